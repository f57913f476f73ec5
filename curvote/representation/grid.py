"""Public bases of curves, and the matrices that project curves onto them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError

Array = NDArray[np.float64]

STEP_TOLERANCE = 1e-3


def check_grid(grid: ArrayLike) -> Array:
    """Return grid points (T,); a grid that is not equidistant: UserError."""
    points = np.atleast_1d(validate.finite(grid=grid))
    if points.ndim != 1 or len(points) < 2:
        raise UserError(
            f"grid has shape {points.shape}; it must be a list of at least 2 points."
        )
    steps = np.diff(points)
    if (steps <= 0).any():
        raise UserError(
            "grid must be strictly increasing, but "
            + _describe_place(points, steps <= 0)
        )
    usual = np.median(steps)
    rounding = 4 * np.spacing(np.abs(points).max())
    odd = ~np.isclose(steps, usual, rtol=STEP_TOLERANCE, atol=rounding)
    if odd.any():
        raise UserError(
            f"grid must be equidistant (its usual step is {usual:.6g}), but "
            + _describe_place(points, odd)
        )
    return points


def _describe_place(points: Array, wrong: NDArray[np.bool_]) -> str:
    i = int(np.flatnonzero(wrong)[0])
    return f"point {i} is {points[i]:.10g} and point {i + 1} is {points[i + 1]:.10g}."
