"""Boxes shrunk to the atoms of a law that has nothing but atoms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.law import Law, Mixture
from curvote.utility.engines.boxes import Boxes
from curvote.validate import FloatArray

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
