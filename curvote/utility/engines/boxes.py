"""Boxes of the sensitive features, that split without a gap and without an overlap.

A box is closed, and its neighbour begins at the next float: every float lies in exactly
one box of a partition, so that an atom is counted once wherever it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product as every
from math import inf

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.law import Mixture
from curvote.validate import FloatArray

Weigh = Callable[[FloatArray, FloatArray], FloatArray]


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
        """The number of records."""
        return len(self.low)

    @property
    def m(self) -> int:
        """The number of boxes of each record, with the empty ones."""
        return self.low.shape[1]

    def taken(self, columns: NDArray[np.intp]) -> Boxes:
        """Return some boxes of each record, (n, k) of them by their columns."""
        rows = np.arange(self.n)[:, None]
        return self._each(lambda part: part[rows, columns])

    def of(self, which: slice) -> Boxes:
        """Return the boxes of some records."""
        return self._each(lambda part: part[which])

    def _each(self, change: Callable[[NDArray], NDArray]) -> Boxes:
        return Boxes(*(change(part) for part in self.parts()))

    def empty(self) -> NDArray[np.bool_]:
        """Say which boxes fill a row only, (n, m)."""
        return np.asarray((self.low > self.high).any(axis=2))

    def parts(self) -> tuple[NDArray, ...]:
        """Return the arrays in the order of the fields."""
        return self.low, self.high, self.answer, self.certain, self.axis

    def replaced(self, columns: NDArray[np.intp], first: Boxes, more: Boxes) -> Boxes:
        """Return ``first`` (n, k) in some columns' place, and ``more`` at the end."""
        rows = np.arange(self.n)[:, None]
        parts = []
        for part, new, added in zip(
            self.parts(), first.parts(), more.parts(), strict=True
        ):
            joined = np.concatenate([part, added], axis=1)
            joined[rows, columns] = new
            parts.append(joined)
        return Boxes(*parts)


def unjudged(low: FloatArray, high: FloatArray) -> Boxes:
    """Return boxes (n, m, s) of which nothing is known yet."""
    shape = low.shape[:2]
    zeros = np.zeros(shape, dtype=np.int64)
    return Boxes(low, high, zeros, np.zeros(shape, dtype=np.bool_), zeros)


def roots(n: int, bounds: FloatArray) -> Boxes:
    """Return everything there is, cut at the bounds (s, 2): 5^s boxes of each record.

    The bounds are boxes of their own, points: clipped outputs have their atoms there.
    """
    sides = [_sides(low, high) for low, high in bounds]
    ends = np.array(list(every(*sides)))
    low, high = np.moveaxis(np.broadcast_to(ends, (n, *ends.shape)), -1, 0)
    return unjudged(low, high)


def _sides(low: float, high: float) -> list[tuple[float, float]]:
    below, above = np.nextafter([low, high], [-inf, inf])
    start, stop = np.nextafter([low, high], [inf, -inf])
    return [(-inf, below), (low, low), (start, stop), (high, high), (above, inf)]


def halves(
    boxes: Boxes, real: NDArray[np.bool_], cut: FloatArray
) -> tuple[Boxes, Boxes]:
    """Return both parts of each box, cut after ``cut`` (n, m) along its axis.

    Where not ``real`` the first is the box itself and the second is empty.
    """
    place = (*np.indices(boxes.axis.shape), boxes.axis)
    high, low = boxes.high.copy(), boxes.low.copy()
    high[place] = np.where(real, cut, high[place])
    low[place] = np.nextafter(cut, inf)
    ends = np.where(real[..., None], [low, boxes.high], [[[[1.0]]], [[[0.0]]]])
    certain = boxes.certain | ~real
    first = replace(boxes, high=high)
    return first, replace(boxes, low=ends[0], high=ends[1], certain=certain)


def middles(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a float from ``low`` on and below ``high``: the middle of two finite ends.

    Towards an infinite end it is twice as far from the origin as the finite one, at
    least by one.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        half = low + (high - low) / 2
    outward = np.where(low == -inf, high, low)
    away = outward + np.where(low == -inf, -1, 1) * np.maximum(np.abs(outward), 1.0)
    at = np.where(np.isfinite(low) & np.isfinite(high), half, away)
    return np.clip(at, low, np.nextafter(high, -inf))


def mass(law: Mixture) -> Weigh:
    """Return what weighs boxes (n, m, s) by P(output in the box), (n, m)."""

    def weigh(low: FloatArray, high: FloatArray) -> FloatArray:
        total = np.zeros(low.shape[:2])
        for share, term in zip(law.weights.T, law.terms, strict=True):
            side = np.broadcast_to(share[:, None], total.shape)
            for i, each in enumerate(term):
                side = side * each.between(low[..., i], high[..., i])
            total += side
        return total

    return weigh


def volume(low: FloatArray, high: FloatArray) -> Weigh:
    """Return what weighs boxes by the share of ``low`` to ``high`` (n, s) they fill.

    Coordinates without width count as one.
    """
    width = (high - low)[:, None]

    def weigh(low: FloatArray, high: FloatArray) -> FloatArray:
        shares = np.divide(high - low, width, out=np.ones_like(low), where=width > 0)
        return np.asarray(np.prod(np.maximum(shares, 0.0), axis=-1))

    return weigh
