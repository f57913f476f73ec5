"""The law for which a partition is made once: mass wherever mechanisms put it."""

from __future__ import annotations

import numpy as np

from curvote.mechanisms.law import Law, Mixture, product
from curvote.validate import FloatArray

EDGE = 0.15
# Of what lies between the bounds: how much near the value, and how near (of the width).
NEAR = 0.5
SPREAD = 0.1


def reference(values: FloatArray, bounds: FloatArray) -> Mixture:
    """Return laws of n records (n, s): atoms at the bounds, even between, a peak."""
    columns = zip(values.T, bounds, strict=True)
    return product(*(_side(column, low, high) for column, (low, high) in columns))


def _side(values: FloatArray, low: float, high: float) -> Law:
    n = len(values)
    at_value = np.clip(values, low, high)[:, None]
    start, stop = (
        np.arctan((end - at_value) / (SPREAD * (high - low))) for end in (low, high)
    )

    def rest(at: FloatArray) -> FloatArray:
        inside = np.clip(at, low, high)
        even = (inside - low) / (high - low)
        angle = np.arctan((inside - at_value) / (SPREAD * (high - low)))
        peak = (angle - start) / (stop - start)
        return (1 - 2 * EDGE) * ((1 - NEAR) * even + NEAR * peak)

    points = np.broadcast_to([[low, high]], (n, 2))
    return Law(points, np.full((n, 2), EDGE), rest, low, high)
