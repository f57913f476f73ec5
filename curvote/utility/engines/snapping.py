"""Boxes drawn in around the atoms of a law that has nothing but atoms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.law import Law, Mixture
from curvote.utility.engines.boxes import Boxes
from curvote.validate import FloatArray

# What a law's atoms may leave over, and still be all of it: far below the slack.
LEFT = 1e-12

# Takes the boxes of records in rows (r,); what it cuts off has no mass.
Snap = Callable[[NDArray[np.intp], Boxes], Boxes]


def nothing_off(_: NDArray[np.intp], boxes: Boxes) -> Boxes:
    """Return the boxes as they are."""
    return boxes


def snap(law: Mixture) -> Snap:
    """Return what takes the parts off boxes that the law never reaches.

    Only coordinates with nothing but atoms count: a withheld feature becomes a point,
    levels become the ends of a side.
    """
    columns = [_points([term[i] for term in law.terms]) for i in range(law.d)]
    if all(points is None for points in columns):
        return nothing_off

    def snapped(rows: NDArray[np.intp], boxes: Boxes) -> Boxes:
        low, high = boxes.low.copy(), boxes.high.copy()
        for i, points in enumerate(columns):
            if points is not None:
                _draw_in(points[rows], low[..., i], high[..., i])
        return replace(boxes, low=low, high=high)

    return snapped


def _points(laws: list[Law]) -> FloatArray | None:
    """Return all atoms (n, k) of one coordinate, in order; None if there is a rest."""
    if any((law.masses.sum(axis=1) < 1 - LEFT).any() for law in laws):
        return None
    return np.sort(np.concatenate([law.points for law in laws], axis=1), axis=1)


def _draw_in(points: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """Move the ends (n, m) to the atoms (n, k) inside; sides without one stay."""
    for row, start, stop in zip(points, low, high, strict=True):
        first = np.searchsorted(row, start, side="left")
        last = np.searchsorted(row, stop, side="right") - 1
        some = first <= last
        start[some], stop[some] = row[first[some]], row[last[some]]
