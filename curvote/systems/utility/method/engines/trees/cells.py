"""Cells of trees: cuts of each feature, reachable leaves, exact sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import Question
from curvote.systems.utility.method.engines.fronts import Front
from curvote.systems.utility.method.engines.trees.table import Nodes, Rule, TreeTable

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
            value[rows] = _cut_values(
                question, front, table, (p, int(column_index)), splits
            )[at]
        rows = np.flatnonzero(~np.isnan(value))
        cuts, rank[rows] = np.unique(value[rows], return_inverse=True)
        place[rows] = p
        all_cuts.append(cuts)
    return Axes(all_cuts, place, rank)


def _cut_values(
    question: Question,
    front: Front,
    table: TreeTable,
    feature_column: tuple[int, int],
    thresholds: FloatArray,
) -> FloatArray:
    """Return the largest values of feature p that go left."""
    if front.steps:
        return _bisect_cuts(question, front, table, feature_column, thresholds)
    return float32_cuts(thresholds) if table.single else thresholds


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
    low, high = (np.full(len(thresholds), _float_rank(end)) for end in (-FAR, FAR))
    while (low + 1 < high).any():
        middle = low // 2 + high // 2 + (low & high & 1)
        rows[:, question.sensitive[p]] = _rank_float(middle)
        values = front.features(rows)[:, column]
        value = values.astype(np.float32).astype(np.float64) if table.single else values
        goes_left = value <= thresholds
        low, high = np.where(goes_left, middle, low), np.where(goes_left, high, middle)
    return _rank_float(low)


def _float_rank(value: float) -> int:
    """Return a float's rank in the order of all floats; zero has 0."""
    bits = int(np.float64(abs(value)).view(np.int64))
    return bits if value >= 0 else -bits


def _rank_float(place: NDArray[np.int64]) -> FloatArray:
    """Return the floats of ranks."""
    return np.copysign(np.abs(place).view(np.float64), place)


def why_not_axes(question: Question, front: Front, table: TreeTable) -> str | None:
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
    s, nodes = len(axes.cuts), table.nodes
    paths, finished = _root_paths(table, axes, len(values)), []
    while paths.shape[1]:
        ended = nodes.left_child[paths[1]] < 0
        finished.append(paths[:, ended])
        paths = paths[:, ~ended]
        split = axes.place[paths[1]] >= 0
        decided = paths[:, ~split]
        at = decided[1]
        value = values[decided[0], nodes.feature[at]]
        goes = value <= nodes.threshold[at]
        categorical = np.flatnonzero(nodes.category[at] >= 0)
        if len(categorical):
            goes[categorical] = _category_goes_left(
                nodes, at[categorical], value[categorical]
            )
        goes = np.where(np.isnan(value), nodes.gap_left[at], goes)
        decided[1] = np.asarray(
            np.where(goes, nodes.left_child[at], nodes.right_child[at])
        )
        paths = np.hstack([decided, *_follow_both(nodes, axes, paths[:, split])])
    ended_paths = np.hstack(finished)
    ended_paths = ended_paths[:, np.argsort(ended_paths[0], kind="stable")]
    return Leaves(
        ended_paths[0], ended_paths[1], ended_paths[2 : 2 + s], ended_paths[2 + s :]
    )


def _root_paths(table: TreeTable, axes: Axes, n: int) -> NDArray[np.int64]:
    """Return the paths at the roots: every tree for every record."""
    t, s = len(table.roots), len(axes.cuts)
    paths = np.zeros((2 + 2 * s, n * t), dtype=np.int64)
    paths[0], paths[1] = np.repeat(np.arange(n), t), np.tile(table.roots, n)
    paths[2 + s :] = axes.ends[:, None]
    return paths


def _category_goes_left(
    nodes: Nodes, at: NDArray[np.int64], value: FloatArray
) -> NDArray[np.bool_]:
    """Return whether each category goes left."""
    code = np.nan_to_num(value).astype(np.int64)
    word = nodes.bits[nodes.category[at], code // 32]
    return np.asarray((word >> (code % 32).astype(np.uint32)) & 1 == 1)


def _follow_both(
    nodes: Nodes, axes: Axes, paths: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the paths on both sides of sensitive splits, the nonempty ones."""
    s, at = len(axes.cuts), paths[1]
    low, high = 2 + axes.place[at], 2 + s + axes.place[at]
    middle, all_paths = axes.rank[at] + 1, np.arange(len(at))
    lefts = np.flatnonzero(paths[low, all_paths] < middle)
    rights = np.flatnonzero(paths[high, all_paths] > middle)
    left_paths, right_paths = paths[:, lefts], paths[:, rights]
    left_paths[1], right_paths[1] = (
        nodes.left_child[at[lefts]],
        nodes.right_child[at[rights]],
    )
    ends, starts = (
        (high[lefts], all_paths[: len(lefts)]),
        (low[rights], all_paths[: len(rights)]),
    )
    left_paths[ends] = np.minimum(left_paths[ends], middle[lefts])
    right_paths[starts] = np.maximum(right_paths[starts], middle[rights])
    return [left_paths, right_paths]


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
    largest = max(table.largest_sum(), 2.0**-900)
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
