"""Cells of trees: cuts of each feature, reachable leaves, exact sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.base import Question
from curvote.utility.engines.fronts import Front
from curvote.utility.engines.trees.table import TreeTable
from curvote.validate import FloatArray

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
