"""Ensembles of trees as one table of nodes, whatever the estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray

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

    def largest_sum(self) -> float:
        """Return a bound on the size of every sum."""
        sizes = np.maximum.reduceat(np.abs(self.nodes.value).max(axis=1), self.roots)
        return float(sizes.sum() + np.abs(self.start).max())


def join_trees(trees: Sequence[Nodes]) -> tuple[Nodes, NDArray[np.int64]]:
    """Return the nodes of all trees, and the index of each tree's root."""
    sizes = np.array([len(tree.left_child) for tree in trees])
    roots = np.cumsum(sizes) - sizes
    rows = np.array([len(tree.bits) for tree in trees])
    shifted = zip(trees, roots, np.cumsum(rows) - rows, strict=True)
    moved = [_shift_tree(tree, root, row) for tree, root, row in shifted]
    columns = {
        name: np.concatenate([getattr(tree, name) for tree in moved])
        for name in Nodes.__dataclass_fields__
    }
    return Nodes(**columns), roots


def _shift_tree(tree: Nodes, root: int, row: int) -> Nodes:
    """Return a tree whose nodes are numbered from ``root``, its bits from ``row``."""
    inner = tree.left_child >= 0
    return Nodes(
        tree.feature,
        tree.threshold,
        np.where(inner, tree.left_child + root, -1),
        np.where(inner, tree.right_child + root, -1),
        tree.gap_left,
        tree.value,
        np.where(tree.category >= 0, tree.category + row, -1),
        tree.bits,
    )


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


def _zero_start(value: FloatArray) -> FloatArray:
    """Return the sums' start: zeros."""
    return np.zeros(value.shape[1])


def _read_tree(model: Any) -> TreeTable:
    """Return the table of a single tree."""
    choice = np.argmax(model.tree_.value[:, 0], axis=1)
    votes = _class_votes(choice, len(model.classes_))
    nodes, roots = join_trees([nodes_of_tree(model.tree_, votes)])
    return TreeTable(nodes, roots, _zero_start(votes), _sum_rule(votes))


def _sum_rule(value: FloatArray) -> Any:
    """Return the rule from sums to an answer."""
    return "positive" if value.shape[1] == 1 else "largest"


def _read_forest(model: Any) -> TreeTable:
    """Return the table of a forest: sums of shares."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    nodes, roots = join_trees(
        [nodes_of_tree(tree, _leaf_shares(tree)) for tree in trees]
    )
    start, rule = _zero_start(nodes.value), _sum_rule(nodes.value)
    return TreeTable(
        nodes, roots, start, rule, rounded=any(map(_has_rounded_shares, trees))
    )


def _has_rounded_shares(tree: Any) -> bool:
    """Return whether two shares of a leaf do not add up to 1.

    Where they do, a difference of few bits has shares of few bits.
    """
    leaves = tree.value[tree.children_left < 0, 0]
    return leaves.shape[1] == 2 and bool((leaves.sum(axis=1) != 1).any())


def _leaf_shares(tree: Any) -> FloatArray:
    """Return the class shares at each node, of two classes their difference."""
    value = np.asarray(tree.value[:, 0], dtype=np.float64)
    return np.diff(value, axis=1) if value.shape[1] == 2 else value


def _read_ada(model: Any) -> TreeTable | str:
    """Return the table of AdaBoost, or why it cannot be read."""
    trees = model.estimators_
    if any(type(tree).__name__ != "DecisionTreeClassifier" for tree in trees):
        return "What AdaBoost boosts here are no decision trees."
    k, weights = len(model.classes_), model.estimator_weights_
    nodes, roots = join_trees(
        [
            nodes_of_tree(
                tree.tree_, _class_votes(_tree_choice(model, tree), k, float(weight))
            )
            for tree, weight in zip(trees, weights, strict=False)
        ]
    )
    return TreeTable(nodes, roots, _zero_start(nodes.value), _sum_rule(nodes.value))


def _tree_choice(model: Any, tree: Any) -> NDArray[np.int64]:
    """Return each node's class index in the ensemble."""
    named = tree.classes_[np.argmax(tree.tree_.value[:, 0], axis=1)]
    return np.asarray(np.searchsorted(model.classes_, named))


def _read_boosting(model: Any) -> TreeTable | str:
    """Return the table of gradient boosting, or why it cannot be read."""
    if isinstance(model.init_, str) or type(model.init_).__name__ == "DummyClassifier":
        if getattr(model.init_, "strategy", "prior") == "stratified":
            return "The first guess of the boosting is drawn."
        width = model.estimators_.shape[1]
        trees = [
            nodes_of_tree(
                tree.tree_,
                _in_sum(k, width, model.learning_rate * tree.tree_.value[:, 0]),
            )
            for row in model.estimators_
            for k, tree in enumerate(row)
        ]
        # The library has no public way to the constant that its sums begin with.
        zero_record = np.zeros((1, model.n_features_in_), dtype=np.float32)
        start = model._raw_predict_init(zero_record)[0]  # noqa: SLF001
        return TreeTable(
            *join_trees(trees), start, "not_negative" if width == 1 else "largest"
        )
    return "The first guess of the boosting is a model of its own, not a constant."


def _in_sum(k: int, width: int, value: FloatArray) -> FloatArray:
    """Return values (N, 1) as those of sum k of ``width``."""
    return np.where(np.arange(width) == k, value, 0.0)


def _read_histograms(model: Any) -> TreeTable | str:
    # The library shows its trees nowhere in public.
    """Return the table of histogram gradient boosting."""
    rounds, start = model._predictors, model._baseline_prediction[0]  # noqa: SLF001
    trees = [
        _read_histogram_tree(predictor, k, len(start))
        for row in rounds
        for k, predictor in enumerate(row)
    ]
    nodes, roots = join_trees(trees)
    rule = _sum_rule(nodes.value)
    if model.is_categorical_ is None:
        return TreeTable(nodes, roots, start, rule, single=False)
    order = np.argsort(~model.is_categorical_, kind="stable")
    read = model._preprocessor.transform  # noqa: SLF001  (categories as numbers)
    return TreeTable(nodes, roots, start, rule, False, False, order, read)


def _read_histogram_tree(predictor: Any, k: int, width: int) -> Nodes:
    """Return the nodes of one histogram tree."""
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    value = np.where(inner, 0.0, nodes["value"])[:, None]
    named = inner & (nodes["is_categorical"] == 1)
    return Nodes(
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"].astype(np.float64),
        np.where(inner, nodes["left"].astype(np.int64), -1),
        np.where(inner, nodes["right"].astype(np.int64), -1),
        nodes["missing_go_to_left"] == 1,
        _in_sum(k, width, value),
        np.where(named, nodes["bitset_idx"].astype(np.int64), -1),
        np.asarray(predictor.raw_left_cat_bitsets).reshape(-1, 8),
    )


READERS: dict[str, Callable[[Any], TreeTable | str]] = {
    "DecisionTreeClassifier": _read_tree,
    "ExtraTreeClassifier": _read_tree,
    "RandomForestClassifier": _read_forest,
    "ExtraTreesClassifier": _read_forest,
    "AdaBoostClassifier": _read_ada,
    "GradientBoostingClassifier": _read_boosting,
    "HistGradientBoostingClassifier": _read_histograms,
}
