"""Columns of raw records: arrays, DataFrames and curves read by column name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.representation.functional import curve_values
from curvote.table_file import describe_lines

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TableValues:
    """Numbers (m, p) that a model reads from a table of n rows.

    ``of`` (n,) is the place of each row's record, -1 where a row is of no use, and
    ``reasons`` say of which rows (n,) why.
    """

    values: Array
    of: NDArray[np.int64]
    reasons: dict[str, NDArray[np.bool_]]


class RecordPredictor:
    """A trained classifier of raw records, which carries their ``form``.

    Its methods take arrays (n, T), DataFrames with the ``columns`` (T,) in any order,
    or, where there is a form, tables as training read them: texts, missing cells and
    further columns. As many answers come out as rows went in; a row that is of no use
    has None, or NaN for a number, and a warning says which and why.
    """

    columns: list[str]
    # Its `raw` columns, and `read`, which makes `TableValues` of a table: see
    # datasets/own.
    form: Any = None  # that of a model of an earlier version, too

    def _predict_rows(self, X: Any, answer: Callable[[Array], Any]) -> NDArray[Any]:
        """Return ``answer`` of the records' numbers, one row for each of X."""
        form = self.form
        if (
            form is None
            or not hasattr(X, "columns")
            or not _is_raw_table(X, form, self.columns)
        ):
            return np.asarray(answer(record_matrix(X, self.columns)))
        table = form.read(X, self.columns)
        unusable = table.of < 0
        if unusable.any():
            reasons = table.reasons.items()  # and nothing of what stands in a row
            explanation = "; ".join(
                f"{what} in {describe_lines(X, rows)}" for what, rows in reasons
            )
            if unusable.all():
                raise UserError(f"no row can be used: {explanation}.")
            warnings.warn(
                f"{int(unusable.sum())} of {len(unusable)} rows have no answer:"
                f" {explanation}.",
                UserWarning,
                stacklevel=3,
            )
        answers = np.asarray(answer(table.values))
        if not unusable.any():
            return np.asarray(answers[table.of])
        numbers = answers.dtype.kind == "f"
        dtype, empty = (np.float64, np.nan) if numbers else (object, None)
        padded = np.full((len(unusable), *answers.shape[1:]), empty, dtype=dtype)
        padded[~unusable] = answers[table.of[~unusable]]
        return padded


def _is_raw_table(X: Any, form: Any, columns: list[str]) -> bool:
    """Return whether a table holds the form's raw columns."""
    names = {_column_name(name) for name in X.columns}
    return {*form.raw} <= names or not {*columns} <= names


def grid_names(grid: Iterable[float]) -> list[str]:
    """Return the column names of raw curves: their grid points as text."""
    return [f"{point:.12g}" for point in grid]


def select_columns(X: Any, columns: list[str]) -> Any:
    """Return the named columns of a DataFrame; a missing one: UserError."""
    names = [_column_name(name) for name in getattr(X, "columns", ())]
    missing = [name for name in columns if name not in {*names}]
    if missing:
        wanted = ", ".join(map(repr, columns[:3]))
        raise UserError(
            f"{len(missing)} columns are missing, such as {missing[0]!r}; there must be"
            f" {len(columns)}, by name: {wanted} .. {columns[-1]!r}."
        )
    repeated = [name for name in columns if names.count(name) > 1]
    if repeated:
        raise UserError(
            f"{names.count(repeated[0])} columns are called {repeated[0]!r}."
        )
    return X.set_axis(names, axis=1)[columns]


def _column_name(name: Any) -> str:
    """Return a column's name as text; a number is a grid point."""
    return grid_names([name])[0] if isinstance(name, float) else str(name)


def record_matrix(X: Any, columns: list[str]) -> Array:
    """Return records as an array, the columns of DataFrames by name."""
    named = hasattr(X, "columns")
    table = (
        select_columns(X, columns).to_numpy() if named else _curve_values(X, columns)
    )
    try:
        return np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError("a record holds something that is no number.") from None


def _curve_values(X: Any, columns: list[str]) -> Any:
    """Return the values of curves on the model's grid; else X itself."""
    values, points = curve_values(X)
    if points is not None and grid_names(points) != columns:
        raise UserError(
            f"X is on {len(points)} grid points from {points[0]:g} to {points[-1]:g};"
            f" the model takes {len(columns)}: {columns[0]} .. {columns[-1]}."
        )
    return values
