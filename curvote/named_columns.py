"""Raw records as models take them: columns by name, in any order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.representation.functional import curves

Array = NDArray[np.float64]


def grid_names(grid: Iterable[float]) -> list[str]:
    """Return the column names of raw curves: the grid points, written shortest."""
    return [f"{point:.12g}" for point in grid]


def chosen(X: Any, columns: list[str]) -> Any:
    """Return these columns of a DataFrame, by name; a missing one is a UserError."""
    given = [_text(name) for name in getattr(X, "columns", ())]
    missing = [name for name in columns if name not in {*given}]
    if missing:
        wanted = ", ".join(map(repr, columns[:3]))
        raise UserError(
            f"{len(missing)} columns are missing, such as {missing[0]!r}; there must be"
            f" {len(columns)}, by name: {wanted} .. {columns[-1]!r}."
        )
    return X.set_axis(given, axis=1)[columns]


def _text(name: Any) -> str:
    """Return a column's name; a number is a grid point."""
    return grid_names([name])[0] if isinstance(name, float) else str(name)


def matrix(X: Any, columns: list[str]) -> Array:
    """Return records as an array; DataFrame columns are matched by name, not place."""
    named = hasattr(X, "columns")
    table = chosen(X, columns).to_numpy() if named else _on_grid(X, columns)
    try:
        return np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError("a record holds something that is no number.") from None


def _on_grid(X: Any, columns: list[str]) -> Any:
    """Return the values of curves whose grid points the columns name; else X."""
    values, points = curves(X)
    if points is not None and grid_names(points) != columns:
        raise UserError(
            f"X is on {len(points)} grid points from {points[0]:g} to {points[-1]:g};"
            f" the model takes {len(columns)}: {columns[0]} .. {columns[-1]}."
        )
    return values
