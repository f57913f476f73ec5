"""Where the answers can change: the cuts of each sensitive feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.utility.engines.trees.table import Table
from curvote.validate import FloatArray


def cuts_of(thresholds: FloatArray) -> FloatArray:
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


@dataclass(frozen=True)
class Axes:
    """The cuts on each of s sensitive features, increasing, and the nodes they are of.

    A node with ``place`` p >= 0 sends values of feature p left that are at most
    ``cuts[p][rank]``. On an axis of g cuts cell i is (cuts[i-1], cuts[i]], 0 <= i <= g.
    """

    cuts: Sequence[FloatArray]
    place: NDArray[np.int64]
    rank: NDArray[np.int64]

    @property
    def ends(self) -> NDArray[np.int64]:
        """The number of cells of each axis, (s,)."""
        return np.array([len(cuts) + 1 for cuts in self.cuts])


def axes(table: Table, sensitive: Sequence[int]) -> Axes:
    """Return the cuts of a table; a threshold of infinity cuts nothing."""
    nodes = table.nodes
    place = np.full(len(nodes.left), -1)
    rank, found = np.zeros_like(place), []
    numeric = (nodes.left >= 0) & (nodes.category < 0) & np.isfinite(nodes.threshold)
    for p, column in enumerate(sensitive):
        here = numeric & (nodes.feature == table.place(column))
        given = nodes.threshold[here]
        values = cuts_of(given) if table.single else given
        cuts, rank[here] = np.unique(values, return_inverse=True)
        place[here] = p
        found.append(cuts)
    return Axes(found, place, rank)


def categorical(table: Table, sensitive: Sequence[int]) -> bool:
    """Say whether a split by categories stands on a sensitive column."""
    nodes = table.nodes
    places = [table.place(column) for column in sensitive]
    return bool(np.isin(nodes.feature[nodes.category >= 0], places).any())
