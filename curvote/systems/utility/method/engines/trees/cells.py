"""Ensembles of trees as one table of nodes, and the sums of its cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import Front, Question

# How sums of leaves become an answer: the sign of one sum (at 0 the first class, or the
# second), or the first of the largest sums.
Rule = Literal["positive", "not_negative", "largest"]

NO_BITS: NDArray[np.uint32] = np.zeros((0, 8), dtype=np.uint32)


@dataclass(frozen=True)
class Nodes:
    """Nodes of some trees; a leaf has ``left_child`` -1.

    A number goes left where it is <= ``threshold``, a gap where ``gap_left``. Where
    ``category`` is not -1, a whole number goes left if its bit in that row of ``bits``
    is set. ``value`` (N, C) is what a leaf adds to each of C sums.
    """

    feature: NDArray[np.int64]
    threshold: FloatArray
    left_child: NDArray[np.int64]
    right_child: NDArray[np.int64]
    gap_left: NDArray[np.bool_]
    value: FloatArray
    category: NDArray[np.int64]
    bits: NDArray[np.uint32] = field(default_factory=NO_BITS.copy)


@dataclass(frozen=True)
class TreeTable:
    """Trees of an ensemble: ``nodes``, the trees' ``roots`` (T,), the ``rule``.

    Sums begin at ``start`` (C,). With ``single`` values are compared as float32.
    ``rounded`` says that the model adds other numbers than these, rounded ones.
    ``read`` makes of features what the trees see, in the order of ``columns``; without
    it they see the features as they are.
    """

    nodes: Nodes
    roots: NDArray[np.int64]
    start: FloatArray
    rule: Rule
    single: bool = True
    rounded: bool = False
    columns: NDArray[np.int64] | None = None
    read: Callable[[FloatArray], FloatArray] | None = None

    def compared_values(self, features: FloatArray) -> FloatArray:
        """Return features (n, D) as the trees compare them."""
        values = features if self.read is None else np.asarray(self.read(features))
        return values.astype(np.float32).astype(np.float64) if self.single else values

    @property
    def column(self) -> NDArray[np.int64]:
        """Column of the features at which each node looks, -1 for a leaf, (N,)."""
        at = self.nodes.feature
        columns = at if self.columns is None else self.columns[at]
        return np.where(self.nodes.left_child < 0, -1, columns)


def join_trees(
    trees: Sequence[Nodes],
    start: FloatArray | None = None,
    rule: Rule | None = None,
    **fields: Any,
) -> TreeTable:
    """Return the table of trees whose sums begin at ``start``, at zero without one.

    The rule is that of one sum, or of several, where none is given; ``fields`` are
    others of the table.
    """
    sizes = np.array([len(tree.left_child) for tree in trees])
    roots = np.cumsum(sizes) - sizes
    rows = np.array([len(tree.bits) for tree in trees])
    moved = []
    for tree, root, row in zip(trees, roots, np.cumsum(rows) - rows, strict=True):
        children = {
            side: np.where(tree.left_child >= 0, getattr(tree, side) + root, -1)
            for side in ("left_child", "right_child")
        }
        category = np.where(tree.category >= 0, tree.category + row, -1)
        moved.append(replace(tree, **children, category=category))
    columns = {
        name: np.concatenate([getattr(tree, name) for tree in moved])
        for name in Nodes.__dataclass_fields__
    }
    sums = columns["value"].shape[1]
    start = np.zeros(sums) if start is None else start
    rule = rule or ("positive" if sums == 1 else "largest")
    return TreeTable(Nodes(**columns), roots, start, rule, **fields)


def nodes_of_tree(tree: Any, value: FloatArray) -> Nodes:
    """Return the nodes of scikit-learn's ``tree_``, its leaves worth ``value``."""
    left_child = np.asarray(tree.children_left, dtype=np.int64)
    return Nodes(
        np.asarray(tree.feature, dtype=np.int64),
        np.asarray(tree.threshold, dtype=np.float64),
        left_child,
        np.asarray(tree.children_right, dtype=np.int64),
        np.asarray(tree.missing_go_to_left, dtype=bool),
        np.where(left_child[:, None] < 0, value, 0.0),
        np.full(len(left_child), -1),
    )


def read_table(model: Any) -> TreeTable | str:
    """Return the estimator's table, or why it cannot be read as one."""
    reader = READERS.get(type(model).__name__)
    if reader is None or not type(model).__module__.startswith("sklearn."):
        return f"{type(model).__name__} is no ensemble of trees that is known here."
    if np.ndim(model.classes_) != 1 or isinstance(model.classes_, list):
        return "The trees answer several questions at once."
    return (
        reader(model) if len(model.classes_) > 1 else "The trees know one class only."
    )


def _class_votes(choice: NDArray[np.int64], k: int, weight: float = 1.0) -> FloatArray:
    """Return each node's vote for its class, (N, C)."""
    if k == 2:
        return np.where(choice == 1, weight, -weight)[:, None]
    return np.where(choice[:, None] == np.arange(k), weight, 0.0)


def _read_tree(model: Any) -> TreeTable:
    choice = np.argmax(model.tree_.value[:, 0], axis=1)
    votes = _class_votes(choice, len(model.classes_))
    return join_trees([nodes_of_tree(model.tree_, votes)])


def _read_forest(model: Any) -> TreeTable:
    """Return the table of a forest: sums of shares."""
    trees, rounded = [], False
    for tree in (estimator.tree_ for estimator in model.estimators_):
        shares = np.asarray(tree.value[:, 0], dtype=np.float64)
        if shares.shape[1] == 2:
            # Where two shares add up to 1, a difference of few bits has shares of few.
            leaves = tree.value[tree.children_left < 0, 0]
            rounded |= bool((leaves.sum(axis=1) != 1).any())
            shares = np.diff(shares, axis=1)
        trees.append(nodes_of_tree(tree, shares))
    return join_trees(trees, rounded=rounded)


def _read_ada(model: Any) -> TreeTable | str:
    if any(type(t).__name__ != "DecisionTreeClassifier" for t in model.estimators_):
        return "What AdaBoost boosts here are no decision trees."
    trees = []
    weighted = zip(model.estimators_, model.estimator_weights_, strict=False)
    for tree, weight in weighted:
        named = tree.classes_[np.argmax(tree.tree_.value[:, 0], axis=1)]
        choice = np.asarray(np.searchsorted(model.classes_, named))
        votes = _class_votes(choice, len(model.classes_), float(weight))
        trees.append(nodes_of_tree(tree.tree_, votes))
    return join_trees(trees)


def _read_boosting(model: Any) -> TreeTable | str:
    guess = model.init_
    if not isinstance(guess, str) and type(guess).__name__ != "DummyClassifier":
        return "The first guess of the boosting is a model of its own, not a constant."
    if getattr(guess, "strategy", "prior") == "stratified":
        return "The first guess of the boosting is drawn."
    width, trees = model.estimators_.shape[1], []
    for row in model.estimators_:
        for k, tree in enumerate(row):
            value = model.learning_rate * tree.tree_.value[:, 0]
            trees.append(nodes_of_tree(tree.tree_, _in_sum(k, width, value)))
    # The library has no public way to the constant that its sums begin with.
    zero_record = np.zeros((1, model.n_features_in_), dtype=np.float32)
    start = model._raw_predict_init(zero_record)[0]  # noqa: SLF001
    rule: Rule = "not_negative" if width == 1 else "largest"
    return join_trees(trees, start, rule)


def _in_sum(k: int, width: int, value: FloatArray) -> FloatArray:
    """Return values (N, 1) as those of sum k of ``width``."""
    return np.where(np.arange(width) == k, value, 0.0)


def _read_histograms(model: Any) -> TreeTable | str:
    # The library shows its trees nowhere in public.
    rounds, start = model._predictors, model._baseline_prediction[0]  # noqa: SLF001
    trees = []
    for k, predictor in ((k, tree) for row in rounds for k, tree in enumerate(row)):
        nodes = predictor.nodes
        inner = nodes["is_leaf"] == 0
        value = np.where(inner, 0.0, nodes["value"])[:, None]
        named = inner & (nodes["is_categorical"] == 1)
        tree = Nodes(
            nodes["feature_idx"].astype(np.int64),
            nodes["num_threshold"].astype(np.float64),
            np.where(inner, nodes["left"].astype(np.int64), -1),
            np.where(inner, nodes["right"].astype(np.int64), -1),
            nodes["missing_go_to_left"] == 1,
            _in_sum(k, len(start), value),
            np.where(named, nodes["bitset_idx"].astype(np.int64), -1),
            np.asarray(predictor.raw_left_cat_bitsets).reshape(-1, 8),
        )
        trees.append(tree)
    if model.is_categorical_ is None:
        return join_trees(trees, start, single=False)
    order = np.argsort(~model.is_categorical_, kind="stable")
    read = model._preprocessor.transform  # noqa: SLF001  (categories as numbers)
    return join_trees(trees, start, single=False, columns=order, read=read)


READERS: dict[str, Callable[[Any], TreeTable | str]] = {
    "DecisionTreeClassifier": _read_tree,
    "ExtraTreeClassifier": _read_tree,
    "RandomForestClassifier": _read_forest,
    "ExtraTreesClassifier": _read_forest,
    "AdaBoostClassifier": _read_ada,
    "GradientBoostingClassifier": _read_boosting,
    "HistGradientBoostingClassifier": _read_histograms,
}


# No value in a model's units is as large: float32 ends at 3.4e38.
FAR = 1e36


@dataclass(frozen=True)
class Axes:
    """Cuts on each of s sensitive features, increasing, and their nodes.

    A node with ``place`` p >= 0 sends values of feature p left that are at most
    ``cuts[p][rank]``. On an axis of g cuts cell i is (cuts[i-1], cuts[i]], 0 <= i <= g.
    """

    cuts: Sequence[FloatArray]
    place: NDArray[np.int64]
    rank: NDArray[np.int64]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Number of cells of each axis, (s,)."""
        return np.array([len(cuts) + 1 for cuts in self.cuts])


def make_axes(question: Question, front: Front, table: TreeTable) -> Axes:
    """Return the cuts of a table behind a front."""
    nodes, column = table.nodes, table.column
    numeric = (column >= 0) & (nodes.category < 0) & np.isfinite(nodes.threshold)
    place = np.full(len(column), -1)
    rank, all_cuts = np.zeros_like(place), []
    for p, slopes in enumerate(front.slopes):
        value = np.full(len(column), np.nan)
        for column_index in np.flatnonzero(slopes):
            rows = np.flatnonzero(numeric & (column == column_index))
            splits, at = np.unique(nodes.threshold[rows], return_inverse=True)
            if front.steps:
                feature_column = p, int(column_index)
                cuts = _bisect_cuts(question, front, table, feature_column, splits)
            else:
                cuts = float32_cuts(splits) if table.single else splits
            value[rows] = cuts[at]
        rows = np.flatnonzero(~np.isnan(value))
        cuts, rank[rows] = np.unique(value[rows], return_inverse=True)
        place[rows] = p
        all_cuts.append(cuts)
    return Axes(all_cuts, place, rank)


def float32_cuts(thresholds: FloatArray) -> FloatArray:
    """Return the largest float64 that, as a float32, is at most each threshold.

    scikit-learn compares float32(value) <= threshold. The float32 at most the threshold
    is met by all values up to half the way to the next one, the middle by the rule of
    even mantissas.
    """
    near = thresholds.astype(np.float32)
    below = np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)
    above = np.nextafter(below, np.float32(np.inf)).astype(np.float64)
    middle = (below.astype(np.float64) + above) / 2
    reached = middle.astype(np.float32) <= below
    return np.where(reached, middle, np.nextafter(middle, -np.inf))


def _bisect_cuts(
    question: Question,
    front: Front,
    table: TreeTable,
    feature_column: tuple[int, int],
    thresholds: FloatArray,
) -> FloatArray:
    """Return the largest values that go left behind steps, by bisection.

    A scaler's subtraction and division round, but never change an order: there is a
    last float that goes left. Floats are halved by their bits, in their order.
    """
    p, column = feature_column
    rows = np.tile(question.records[:1], (len(thresholds), 1))
    # A float's rank in the order of all floats; zero has 0.
    rank = int(np.float64(FAR).view(np.int64))
    low, high = (np.full(len(thresholds), end) for end in (-rank, rank))
    while (low + 1 < high).any():
        middle = low // 2 + high // 2 + (low & high & 1)
        rows[:, question.sensitive[p]] = _rank_float(middle)
        values = front.features(rows)[:, column]
        value = values.astype(np.float32).astype(np.float64) if table.single else values
        goes_left = value <= thresholds
        low, high = np.where(goes_left, middle, low), np.where(goes_left, high, middle)
    return _rank_float(low)


def _rank_float(place: NDArray[np.int64]) -> FloatArray:
    return np.copysign(np.abs(place).view(np.float64), place)


def why_not_axes(front: Front, table: TreeTable) -> str | None:
    """Return why sensitive columns do not enter the splits one by one, or None."""
    nodes, column = table.nodes, table.column
    used_columns = column[column >= 0]
    slopes = front.slopes[:, used_columns]
    if (np.count_nonzero(slopes, axis=0) > 1).any():
        return "A step in front of the trees mixes sensitive features."
    if (slopes < 0).any():
        return "A step in front of the trees turns a sensitive feature around."
    if slopes[:, nodes.category[column >= 0] >= 0].any():
        return "The trees split a sensitive feature by categories, not by thresholds."
    return None


@dataclass(frozen=True)
class Leaves:
    """Reachable leaves: record, node, and the cells they fill.

    ``low`` and ``high`` (s, L) are the first cell on each axis and the one after the
    last. Leaves are ordered by record.
    """

    record: NDArray[np.int64]
    node: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def reachable_leaves(table: TreeTable, axes: Axes, values: FloatArray) -> Leaves:
    """Return the leaves that records (n, D), as trees compare them, can reach.

    All paths of all trees and records go down together, a level at a time. A path is a
    column of ``paths``: record, node, first cells, cells after the last.
    """
    s, nodes, finished = len(axes.cuts), table.nodes, []
    n, t = len(values), len(table.roots)
    paths = np.zeros((2 + 2 * s, n * t), dtype=np.int64)
    paths[0], paths[1] = np.repeat(np.arange(n), t), np.tile(table.roots, n)
    paths[2 + s :] = axes.ends[:, None]
    while paths.shape[1]:
        at_leaf = nodes.left_child[paths[1]] < 0
        finished.append(paths[:, at_leaf])
        paths = paths[:, ~at_leaf]
        split = axes.place[paths[1]] >= 0
        decided = paths[:, ~split]
        at = decided[1]
        value = values[decided[0], nodes.feature[at]]
        goes = value <= nodes.threshold[at]
        categorical = np.flatnonzero(nodes.category[at] >= 0)
        if len(categorical):
            code = np.nan_to_num(value[categorical]).astype(np.int64)
            word = nodes.bits[nodes.category[at[categorical]], code // 32]
            goes[categorical] = (word >> (code % 32).astype(np.uint32)) & 1 == 1
        goes = np.where(np.isnan(value), nodes.gap_left[at], goes)
        decided[1] = np.where(goes, nodes.left_child[at], nodes.right_child[at])
        # Paths go on both sides of sensitive splits, where they are not empty.
        paths = paths[:, split]
        at, every = paths[1], np.arange(paths.shape[1])
        low, high = 2 + axes.place[at], 2 + s + axes.place[at]
        middle = axes.rank[at] + 1
        lefts = np.flatnonzero(paths[low, every] < middle)
        rights = np.flatnonzero(paths[high, every] > middle)
        left_paths, right_paths = paths[:, lefts], paths[:, rights]
        left_paths[1] = nodes.left_child[at[lefts]]
        right_paths[1] = nodes.right_child[at[rights]]
        ends = high[lefts], every[: len(lefts)]
        starts = low[rights], every[: len(rights)]
        left_paths[ends] = np.minimum(left_paths[ends], middle[lefts])
        right_paths[starts] = np.maximum(right_paths[starts], middle[rights])
        paths = np.hstack([decided, left_paths, right_paths])
    ended = np.hstack(finished)
    ended = ended[:, np.argsort(ended[0], kind="stable")]
    return Leaves(ended[0], ended[1], ended[2 : 2 + s], ended[2 + s :])


# Sums that are not whole fit 2^52 units, so that the model's own floats hold them too.
MANTISSA_BITS = 52

WholeNumbers = NDArray[np.signedinteger]


@dataclass(frozen=True)
class Units:
    """Leaves' values as whole numbers of a unit, (N, C), and the sums' start.

    In the smallest integers that hold every sum. ``slack`` units are the most by which
    a difference of sums can stray from the model's own; 0 where neither rounds.
    """

    value: WholeNumbers
    start: WholeNumbers
    slack: int


def whole_units(table: TreeTable) -> Units:
    """Return the leaves' values in units of 1 if they are whole, else of a power of 2.

    Each of T values and the start strays by at most half a unit. The model adds T
    floats of a sum below 2^52 units: each addition strays by less than half a unit.
    Twice that for a difference of two sums, and as much again for what the model
    computes of them (shares, rates).
    """
    sizes = np.maximum.reduceat(np.abs(table.nodes.value).max(axis=1), table.roots)
    # No sum is larger.
    largest = max(float(sizes.sum() + np.abs(table.start).max()), 2.0**-900)
    for unit in (1.0, 2.0 ** (MANTISSA_BITS - np.ceil(np.log2(largest)))):
        scaled = table.nodes.value * unit, table.start * unit
        rounded = [np.rint(numbers) for numbers in scaled]
        integral = all((a == b).all() for a, b in zip(scaled, rounded, strict=True))
        exact = integral and not table.rounded
        if exact and largest * unit < 2.0**MANTISSA_BITS:
            break
    kind = np.min_scalar_type(-int(2 * largest * unit))
    slack = 0 if exact else 8 * (len(table.roots) + 1)
    return Units(rounded[0].astype(kind), rounded[1].astype(kind), slack)


def cell_sums(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    value: WholeNumbers,
    start: WholeNumbers,
    shape: tuple[int, ...],
) -> WholeNumbers:
    """Return the C sums of each cell, (C, *shape), of boxes (s, L) worth (L, C).

    A box adds its value at its first corner and takes it back behind its ends: running
    sums along each axis spread it. Whole numbers may overflow on the way; what comes
    out is exact.
    """
    wide = tuple(m + 1 for m in shape)
    corners = np.zeros((len(start), int(np.prod(wide))), dtype=value.dtype)
    corners[:, 0] = start
    for sides in product((False, True), repeat=len(shape)):
        at = np.ravel_multi_index(
            [np.where(side, high[j], low[j]) for j, side in enumerate(sides)], wide
        )
        for c, total in enumerate(corners):
            np.add.at(total, at, -value[:, c] if sum(sides) % 2 else value[:, c])
    spread = corners.reshape(len(start), *wide)
    for axis in range(1, spread.ndim):
        np.cumsum(spread, axis=axis, dtype=spread.dtype, out=spread)
    return spread[(slice(None), *[slice(-1)] * len(shape))]


def cell_classes(
    total: WholeNumbers, rule: Rule, slack: int
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.bool_]]:
    """Return each cell's class, and where a tie is too near to be sure."""
    if rule == "largest":
        first = np.argmax(total, axis=0).astype(np.min_scalar_type(len(total) - 1))
        if not slack:
            return first, np.zeros(first.shape, dtype=bool)
        ordered = np.partition(total, len(total) - 2, axis=0)
        return first, ordered[-1] - ordered[-2] <= slack
    margin = total[0]
    second = margin > 0 if rule == "positive" else margin >= 0
    near = np.abs(margin) <= slack if slack else np.zeros_like(second)
    return second.view(np.uint8), near
