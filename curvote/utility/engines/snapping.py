"""Boxes drawn in around the atoms of a law that has nothing but atoms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.law import Law, Mixture
from curvote.utility.engines.boxes import Boxes
from curvote.utility.engines.branch import Oracle, judged
from curvote.validate import FloatArray

# What a law's atoms may leave over, and still be all of it: far below the slack.
LEFT = 1e-12


def snapped(oracle: Oracle, who: NDArray[np.intp], boxes: Boxes, law: Mixture) -> Boxes:
    """Return the boxes without the parts that the law never reaches, judged anew.

    Only coordinates with nothing but atoms count: a withheld feature becomes a point,
    levels become the ends of a side.
    """
    low, high = boxes.low.copy(), boxes.high.copy()
    for i in range(law.d):
        points = _points([term[i] for term in law.terms])
        if points is not None:
            _draw_in(points, low[..., i], high[..., i])
    moved = ((low != boxes.low) | (high != boxes.high)).any(axis=2)
    return judged(
        oracle, who, replace(boxes, low=low, high=high), moved & ~boxes.certain
    )


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
