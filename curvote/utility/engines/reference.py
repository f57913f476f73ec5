"""Reference law for which a partition is made once."""

from __future__ import annotations

import numpy as np

from curvote.mechanisms.law import Law, Mixture, Rest, product_law
from curvote.validate import FloatArray

EDGE = 0.15
# Of what lies between the bounds: how much near the value, and how near (of the width).
NEAR = 0.5
SPREAD = 0.1


def reference_law(values: FloatArray, bounds: FloatArray) -> Mixture:
    """Return the reference laws of n records (n, s)."""
    columns = zip(values.T, bounds, strict=True)
    return product_law(
        *(_feature_law(column, low, high) for column, (low, high) in columns)
    )


def _feature_law(values: FloatArray, low: float, high: float) -> Law:
    """Return the reference law of one feature."""
    inside = np.clip(values, low, high)[:, None]
    points = np.broadcast_to([[low, high]], (len(values), 2))
    masses = np.full(points.shape, EDGE)
    return Law(points, masses, _continuous_part(low, high), inside, low, high)


def _continuous_part(low: float, high: float) -> Rest:
    """Return the part of the law without atoms, all of it between the bounds."""
    spread = SPREAD * (high - low)

    def rest(value: FloatArray, at: FloatArray) -> FloatArray:
        inside = np.clip(at, low, high)
        start, middle, stop = (
            np.arctan((place - value) / spread) for place in (low, inside, high)
        )
        peak = (middle - start) / (stop - start)
        even = (inside - low) / (high - low)
        return np.asarray((1 - 2 * EDGE) * ((1 - NEAR) * even + NEAR * peak))

    return rest
