"""Columns of raw records: arrays, DataFrames and curves read by column name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.representation.grid import STEP_TOLERANCE

Array = NDArray[np.float64]

# A grid point may be off by such a part of a step, and is still the same.
_GRID_TOLERANCE = 1e-6
_SUGGESTED_POINTS = 101


def curve_values(X: Any, grid: ArrayLike | None = None) -> tuple[Any, Array | None]:
    """Return values (n, T) and grid (T,) of an FDataGrid; else X itself.

    ``grid`` is what is stated of the grid: that of arrays, and an FDataGrid on another
    one is a UserError, as are FDataBasis, FDataIrregular, surfaces and curves with
    several coordinates; the cure is named.
    """
    given_grid = None if grid is None else validate.finite(grid=grid)
    _refuse_without_grid(X)
    if not (hasattr(X, "data_matrix") and hasattr(X, "grid_points")):
        return X, given_grid
    _refuse_multivariate(X)
    values, points = np.asarray(X.data_matrix), np.asarray(X.grid_points[0])
    if given_grid is not None and not same_grid(points, given_grid):
        raise UserError(
            f"X is on {_describe_grid(points)}; grid states"
            f" {_describe_grid(given_grid)}. Leave"
            " grid out: an FDataGrid brings its own."
        )
    return values[..., 0], points.astype(np.float64)


def _refuse_without_grid(X: Any) -> None:
    if hasattr(X, "start_indices"):
        raise UserError(
            "X is an FDataIrregular: each curve has grid points of its own. Give all"
            " curves on one equidistant grid, such as X.to_basis(BSplineBasis("
            "X.domain_range,"
            f" n_basis=10)).to_grid({_linspace_code(X, _SUGGESTED_POINTS)})."
        )
    if hasattr(X, "coefficients") and hasattr(X, "basis"):
        raise UserError(
            "X is an FDataBasis: coefficients of a basis of its own. Give the curves"
            " on an equidistant grid,"
            f" X.to_grid({_linspace_code(X, _SUGGESTED_POINTS)})."
        )


def _refuse_multivariate(X: Any) -> None:
    if X.dim_domain > 1:
        raise UserError(
            f"X holds surfaces, over {X.dim_domain} variables; give curves, over one."
        )
    if X.dim_codomain > 1:
        raise UserError(
            f"X has {X.dim_codomain} values at each point; give one of them, such as"
            " X.coordinates[0]."
        )


def refuse_uneven_grid(X: Any) -> None:
    """Refuse an FDataGrid whose grid points are not equidistant."""
    points = np.asarray(X.grid_points[0]) if hasattr(X, "grid_points") else np.zeros(0)
    if len(points) < 3:
        return
    steps = np.diff(points)
    if not np.allclose(steps, np.median(steps), rtol=STEP_TOLERANCE):
        raise UserError(
            f"X is on {len(points)} grid points that are not equidistant: their steps"
            f" are {steps.min():g} to {steps.max():g}. Write"
            f" X.to_grid({_linspace_code(X, len(points))})."
        )


def refuse_other_grid(points: Array | None, learned: Array | None) -> None:
    """Refuse curves on another grid than the model's.

    None on either side says that nothing is known of it: then widths must agree.
    """
    if points is None or learned is None or same_grid(points, learned):
        return
    cure = "It judges no curve on another domain."
    if np.allclose(points[[0, -1]], learned[[0, -1]]):
        cure = "Write X.to_grid(model.grid_)."
    raise UserError(
        f"X is on {_describe_grid(points)}; the model learned from curves on"
        f" {_describe_grid(learned)}. {cure}"
    )


def refuse_curves(X: Any) -> None:
    """Refuse functional data where columns of numbers are expected."""
    cure = ""
    if hasattr(X, "data_matrix"):
        cure = "X.data_matrix[..., 0]"
    elif hasattr(X, "coefficients") and hasattr(X, "basis"):
        cure = "X.coefficients"
    elif hasattr(X, "start_indices"):
        cure = "X.to_basis(BSplineBasis(X.domain_range, n_basis=10)).coefficients"
    if cure:
        raise UserError(
            f"X is an {type(X).__name__}; columns of numbers are taken here. Give"
            f" {cure}, and the same at predict."
        )


def same_grid(first: Array, second: Array) -> bool:
    """Return whether two grids are equal up to rounding."""
    if len(first) != len(second):
        return False
    step = (first[-1] - first[0]) / max(1, len(first) - 1)
    return bool(np.allclose(first, second, rtol=0, atol=_GRID_TOLERANCE * abs(step)))


def _describe_grid(points: Array) -> str:
    return f"{len(points)} grid points from {points[0]:g} to {points[-1]:g}"


def _linspace_code(X: Any, count: int) -> str:
    low, high = X.domain_range[0]
    return f"np.linspace({low:g}, {high:g}, {count})"
