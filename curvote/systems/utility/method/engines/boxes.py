"""Boxes of the sensitive features, that split without a gap and without an overlap.

A box is closed, and its neighbour begins at the next float: every float lies in exactly
one box of a partition, so that an atom is counted once wherever it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product as every
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.mechanisms.base import Law, Mixture

# What boxes (k, m, s) of the records in rows (k,) weigh, (k, m).
Weigher = Callable[[NDArray[np.intp], FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Boxes:
    """Boxes of n records, m of each: ``low`` and ``high`` (n, m, s).

    ``answer`` (n, m) is the class in the whole box where ``certain``, else the one at
    its centre. ``axis`` (n, m) is the coordinate to be split next, -1 for none. A box
    whose ``low`` exceeds its ``high`` is empty: it fills a shorter row.
    """

    low: FloatArray
    high: FloatArray
    answer: NDArray[np.int64]
    certain: NDArray[np.bool_]
    axis: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.low)

    @property
    def m(self) -> int:
        """Number of boxes of each record, with the empty ones."""
        return int(self.low.shape[1])

    def select_columns(self, columns: NDArray[np.intp]) -> Boxes:
        """Return some boxes of each record by their columns (n, k)."""
        rows = np.arange(self.n)[:, None]
        return self._map_arrays(lambda part: part[rows, columns])

    def of(self, which: slice | NDArray[np.bool_]) -> Boxes:
        """Return the boxes of some records."""
        return self._map_arrays(lambda part: part[which])

    def _map_arrays(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Boxes:
        """Return the boxes with one function applied to every array."""
        return Boxes(*(change(part) for part in self.parts()))

    def within(self, low: FloatArray, high: FloatArray) -> Boxes:
        """Return the parts of the boxes inside each record's box, (n, s)."""
        start = np.maximum(self.low, low[:, None])
        return replace(self, low=start, high=np.minimum(self.high, high[:, None]))

    def empty(self) -> NDArray[np.bool_]:
        """Return the mask of boxes that only fill a row, (n, m)."""
        return np.asarray((self.low > self.high).any(axis=2))

    def parts(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays in the order of the fields."""
        return self.low, self.high, self.answer, self.certain, self.axis

    def replace_columns(
        self, columns: NDArray[np.intp], first: Boxes, more: Boxes
    ) -> Boxes:
        """Return the boxes with ``first`` (n, k) in place of some, ``more`` added."""
        rows, parts = np.arange(self.n)[:, None], []
        triples = zip(self.parts(), first.parts(), more.parts(), strict=True)
        for part, new, added in triples:
            joined = np.concatenate([part, added], axis=1)
            joined[rows, columns] = new
            parts.append(joined)
        return Boxes(*parts)


def empty_boxes(n: int, m: int, s: int) -> Boxes:
    """Return empty boxes of this shape."""
    low, high = np.ones((n, m, s)), np.zeros((n, m, s))
    none = np.full((n, m), -1)
    return Boxes(low, high, np.zeros_like(none), np.full((n, m), True), none)


def open_boxes(low: FloatArray, high: FloatArray) -> Boxes:
    """Return boxes (n, m, s) without any verdict yet."""
    shape = low.shape[:2]
    zeros = np.zeros(shape, dtype=np.int64)
    return Boxes(low, high, zeros, np.zeros(shape, dtype=np.bool_), zeros)


def root_boxes(n: int, bounds: FloatArray) -> Boxes:
    """Return the boxes that cover all space, cut at the bounds (s, 2): 5^s each.

    The bounds are boxes of their own, points: clipped outputs have their atoms there.
    """
    sides = [_cut_line(low, high) for low, high in bounds]
    ends = np.array(list(every(*sides)))
    low, high = np.moveaxis(np.broadcast_to(ends, (n, *ends.shape)), -1, 0)
    return open_boxes(low, high)


def _cut_line(low: float, high: float) -> list[tuple[float, float]]:
    """Return five intervals of the line, cut at two bounds."""
    below, above = np.nextafter([low, high], [-inf, inf])
    start, stop = np.nextafter([low, high], [inf, -inf])
    return [(-inf, below), (low, low), (start, stop), (high, high), (above, inf)]


def split_boxes(
    boxes: Boxes, splits: NDArray[np.bool_], cut: FloatArray
) -> tuple[Boxes, Boxes]:
    """Return both parts of each box, cut after ``cut`` (n, m) along its axis.

    Where not ``splits`` the first is the box itself and the second is empty.
    """
    place = (*np.indices(boxes.axis.shape), boxes.axis)
    high, low = boxes.high.copy(), boxes.low.copy()
    high[place] = np.where(splits, cut, high[place])
    low[place] = np.where(splits, np.nextafter(cut, inf), inf)
    return replace(boxes, high=high), replace(boxes, low=low, certain=~splits)


def cut_points(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a float in [low, high): the middle of two finite ends.

    Towards an infinite end it is twice as far from the origin as the finite one, at
    least by one.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        half = low + (high - low) / 2
    outward = np.where(low == -inf, high, low)
    away = outward + np.where(low == -inf, -1, 1) * np.maximum(np.abs(outward), 1.0)
    at = np.where(np.isfinite(low) & np.isfinite(high), half, away)
    return np.clip(at, low, np.nextafter(high, -inf))


def mass_weigher(law: Mixture) -> Weigher:
    """Return the function that weighs boxes by P(output in the box)."""

    def weigh(rows: NDArray[np.intp], low: FloatArray, high: FloatArray) -> FloatArray:
        row_law = law.select(rows)
        sides: dict[tuple[int, int], FloatArray] = {}
        total = np.zeros(low.shape[:2])
        for share, term in zip(row_law.weights.T, row_law.terms, strict=True):
            weight = np.broadcast_to(share[:, None], total.shape)
            for i, law_of_side in enumerate(term):
                if (i, id(law_of_side)) not in sides:
                    sides[i, id(law_of_side)] = _interval_mass(
                        law_of_side, low[..., i], high[..., i]
                    )
                weight = weight * sides[i, id(law_of_side)]
            total += weight
        return total

    return weigh


def _interval_mass(law: Law, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return P(low <= output <= high), (n, m).

    Boxes share their ends, within a record and among records.
    """
    starts, stops = np.unique(low), np.unique(high)
    rows = np.arange(law.n)[:, None]
    below = law.below(starts)[rows, np.searchsorted(starts, low)]
    inside = law.cdf(stops)[rows, np.searchsorted(stops, high)] - below
    return np.asarray(np.maximum(inside, 0.0))


def volume_weigher(low: FloatArray, high: FloatArray) -> Weigher:
    """Return the function that weighs boxes by their share of a larger box.

    Coordinates without width count as one.
    """
    widths = (high - low)[:, None]

    def weigh(rows: NDArray[np.intp], low: FloatArray, high: FloatArray) -> FloatArray:
        width, side = widths[rows], high - low
        shares = np.divide(side, width, out=np.ones_like(side), where=width > 0)
        return np.asarray(np.prod(np.maximum(shares, 0.0), axis=-1))

    return weigh


# What a law's atoms may leave over, and still be all of it: far below the slack.
REST_MASS = 1e-12

# Takes the boxes of records in rows (r,); what it cuts off has no mass.
BoxSnap = Callable[[NDArray[np.intp], Boxes], Boxes]


def keep_boxes(_: NDArray[np.intp], boxes: Boxes) -> Boxes:
    """Return the boxes as they are."""
    return boxes


def make_snap(law: Mixture) -> BoxSnap:
    """Return the function that cuts massless parts off boxes.

    Only coordinates with nothing but atoms count: a withheld feature becomes a point,
    levels become the ends of a side.
    """
    columns = [_sorted_atoms([term[i] for term in law.terms]) for i in range(law.d)]
    if all(points is None for points in columns):
        return keep_boxes

    def shrink(rows: NDArray[np.intp], boxes: Boxes) -> Boxes:
        low, high = boxes.low.copy(), boxes.high.copy()
        for i, points in enumerate(columns):
            if points is not None:
                _shrink_side(points[rows], low[..., i], high[..., i])
        return replace(boxes, low=low, high=high)

    return shrink


def _sorted_atoms(laws: list[Law]) -> FloatArray | None:
    """Return all atoms (n, k) of a coordinate, in order, None with other mass."""
    if any((law.masses.sum(axis=1) < 1 - REST_MASS).any() for law in laws):
        return None
    return np.sort(np.concatenate([law.points for law in laws], axis=1), axis=1)


def _shrink_side(points: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """Move the ends (n, m) to the atoms (n, k) inside, where there is one."""
    for row, start, stop in zip(points, low, high, strict=True):
        first = np.searchsorted(row, start, side="left")
        last = np.searchsorted(row, stop, side="right") - 1
        nonempty = first <= last
        start[nonempty], stop[nonempty] = row[first[nonempty]], row[last[nonempty]]
