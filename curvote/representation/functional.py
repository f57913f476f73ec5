"""Curves as scikit-fda hands them over, read as rows of values on one grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.representation.grid import STEP_TOLERANCE

Array = NDArray[np.float64]

# A grid point may be off by such a part of a step, and is still the same.
_SAME = 1e-6
_POINTS = 101


def curves(X: Any, grid: ArrayLike | None = None) -> tuple[Any, Array | None]:
    """Return the values (n, T) of an FDataGrid and its grid (T,); else X as it is.

    ``grid`` is what is stated of the grid: that of arrays, and an FDataGrid on another
    one is a UserError, as are FDataBasis, FDataIrregular, surfaces and curves with
    several coordinates; the cure is named.
    """
    stated = None if grid is None else validate.finite(grid=grid)
    _refuse_without_grid(X)
    if not (hasattr(X, "data_matrix") and hasattr(X, "grid_points")):
        return X, stated
    _refuse_several(X)
    values, points = np.asarray(X.data_matrix), np.asarray(X.grid_points[0])
    if stated is not None and not same(points, stated):
        raise UserError(
            f"X is on {_described(points)}; grid states {_described(stated)}. Leave"
            " grid out: an FDataGrid brings its own."
        )
    return values[..., 0], points.astype(np.float64)


def _refuse_without_grid(X: Any) -> None:
    if hasattr(X, "start_indices"):
        raise UserError(
            "X is an FDataIrregular: each curve has grid points of its own. Give all"
            " curves on one equidistant grid, such as X.to_basis(BSplineBasis("
            f"X.domain_range, n_basis=10)).to_grid({_linspace(X, _POINTS)})."
        )
    if hasattr(X, "coefficients") and hasattr(X, "basis"):
        raise UserError(
            "X is an FDataBasis: coefficients of a basis of its own. Give the curves"
            f" on an equidistant grid, X.to_grid({_linspace(X, _POINTS)})."
        )


def _refuse_several(X: Any) -> None:
    if X.dim_domain > 1:
        raise UserError(
            f"X holds surfaces, over {X.dim_domain} variables; give curves, over one."
        )
    if X.dim_codomain > 1:
        raise UserError(
            f"X has {X.dim_codomain} values at each point; give one of them, such as"
            " X.coordinates[0]."
        )


def refuse_uneven(X: Any) -> None:
    """Refuse an FDataGrid whose grid points are not equidistant; the cure is named."""
    points = np.asarray(X.grid_points[0]) if hasattr(X, "grid_points") else np.zeros(0)
    if len(points) < 3:
        return
    steps = np.diff(points)
    if not np.allclose(steps, np.median(steps), rtol=STEP_TOLERANCE):
        raise UserError(
            f"X is on {len(points)} grid points that are not equidistant: their steps"
            f" are {steps.min():g} to {steps.max():g}. Write"
            f" X.to_grid({_linspace(X, len(points))})."
        )


def refuse_other(points: Array | None, learned: Array | None) -> None:
    """Refuse curves on grid ``points`` that is not the one a model ``learned`` from.

    None on either side says that nothing is known of it: then widths must agree.
    """
    if points is None or learned is None or same(points, learned):
        return
    cure = "It judges no curve on another domain."
    if np.allclose(points[[0, -1]], learned[[0, -1]]):
        cure = "Write X.to_grid(model.grid_)."
    raise UserError(
        f"X is on {_described(points)}; the model learned from curves on"
        f" {_described(learned)}. {cure}"
    )


def refuse_curves(X: Any) -> None:
    """Refuse curves where columns of numbers are learned from; the cure is named."""
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


def same(one: Array, other: Array) -> bool:
    """Say whether two grids are one, but for rounding."""
    if len(one) != len(other):
        return False
    step = (one[-1] - one[0]) / max(1, len(one) - 1)
    return bool(np.allclose(one, other, rtol=0, atol=_SAME * abs(step)))


def _described(points: Array) -> str:
    return f"{len(points)} grid points from {points[0]:g} to {points[-1]:g}"


def _linspace(X: Any, count: int) -> str:
    low, high = X.domain_range[0]
    return f"np.linspace({low:g}, {high:g}, {count})"
