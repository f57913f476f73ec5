"""Raw records as models take them: columns by name, in any order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.representation.functional import curves
from curvote.table_file import lines

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Taken:
    """What a model reads of a table: the numbers (m, p) of the records in n rows.

    ``of`` (n,) is the place of each row's record, -1 where a row is of no use, and
    ``reasons`` say of which rows (n,) why.
    """

    values: Array
    of: NDArray[np.int64]
    reasons: dict[str, NDArray[np.bool_]]


class OfRecords:
    """A finished classifier of raw records, which carries their ``form``.

    Its methods take arrays (n, T), DataFrames with the ``columns`` (T,) in any order,
    or, where there is a form, tables as training read them: texts, missing cells and
    further columns. As many answers come out as rows went in; a row that is of no use
    has None, or NaN for a number, and a warning says which and why.
    """

    columns: list[str]
    # Its `raw` columns, and `read`, which makes `Taken` of a table: see datasets/own.
    form: Any = None  # that of a model of an earlier version, too

    def _answered(self, X: Any, answer: Callable[[Array], Any]) -> NDArray[Any]:
        """Return what ``answer`` says of the records' numbers, a row for each of X."""
        form = self.form
        if form is None or not hasattr(X, "columns") or not _raw(X, form, self.columns):
            return np.asarray(answer(matrix(X, self.columns)))
        taken = form.read(X, self.columns)
        lost = taken.of < 0
        if lost.any():
            reasons = taken.reasons.items()  # and nothing of what stands in a row
            words = "; ".join(f"{what} in {lines(X, rows)}" for what, rows in reasons)
            if lost.all():
                raise UserError(f"no row can be used: {words}.")
            warnings.warn(
                f"{int(lost.sum())} of {len(lost)} rows have no answer: {words}.",
                UserWarning,
                stacklevel=3,
            )
        answers = np.asarray(answer(taken.values))
        if not lost.any():
            return np.asarray(answers[taken.of])
        numbers = answers.dtype.kind == "f"
        kind, empty = (np.float64, np.nan) if numbers else (object, None)
        every = np.full((len(lost), *answers.shape[1:]), empty, dtype=kind)
        every[~lost] = answers[taken.of[~lost]]
        return every


def _raw(X: Any, form: Any, columns: list[str]) -> bool:
    """Say whether a table is raw; one with all the model's numbers need not be."""
    given = {_text(name) for name in X.columns}
    return {*form.raw} <= given or not {*columns} <= given


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
    twice = [name for name in columns if given.count(name) > 1]
    if twice:
        raise UserError(f"{given.count(twice[0])} columns are called {twice[0]!r}.")
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
