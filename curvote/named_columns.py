"""Raw records as models take them: columns by name, in any order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError

Array = NDArray[np.float64]


def grid_names(grid: Iterable[float]) -> list[str]:
    """Return the column names of raw curves: the grid points, written shortest."""
    return [f"{point:.12g}" for point in grid]


def chosen(X: Any, columns: list[str]) -> Any:
    """Return these columns of a DataFrame, by name; a missing one is a UserError."""
    given = [str(name) for name in getattr(X, "columns", ())]
    missing = [name for name in columns if name not in {*given}]
    if missing:
        wanted = ", ".join(map(repr, columns[:3]))
        raise UserError(
            f"{len(missing)} columns are missing, such as {missing[0]!r}; there must be"
            f" {len(columns)}, by name: {wanted} .. {columns[-1]!r}."
        )
    return X.set_axis(given, axis=1)[columns]


def matrix(X: Any, columns: list[str]) -> Array:
    """Return records as an array; DataFrame columns are matched by name, not place."""
    table = chosen(X, columns).to_numpy() if hasattr(X, "columns") else X
    try:
        return np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError("a record holds something that is no number.") from None
