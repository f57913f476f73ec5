"""Columns of raw records: arrays, DataFrames and curves read by column name."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.table_file import describe_lines
from curvote.curves.basis import STEP_TOLERANCE, Array

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
    if not (hasattr(X, "data_matrix") and hasattr(X, "grid_points")):
        return X, given_grid
    if X.dim_domain > 1:
        raise UserError(
            f"X holds surfaces, over {X.dim_domain} variables; give curves, over one."
        )
    if X.dim_codomain > 1:
        raise UserError(
            f"X has {X.dim_codomain} values at each point; give one of them, such as"
            " X.coordinates[0]."
        )
    values, points = np.asarray(X.data_matrix), np.asarray(X.grid_points[0])
    if given_grid is not None and not same_grid(points, given_grid):
        raise UserError(
            f"X is on {_describe_grid(points)}; grid states"
            f" {_describe_grid(given_grid)}. Leave"
            " grid out: an FDataGrid brings its own."
        )
    return values[..., 0], points.astype(np.float64)


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
    classes: Any
    # Its `raw` columns, and `read`, which makes `TableValues` of a table: see
    # datasets/own.
    form: Any = None  # that of a model of an earlier version, too

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the publisher's order: of two the negative one first."""
        return np.asarray(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _predict_rows(self, X: Any, answer: Callable[[Array], Any]) -> NDArray[Any]:
        """Return ``answer`` of the records' numbers, one row for each of X."""
        form, raw = self.form, False
        if form is not None and hasattr(X, "columns"):
            names = {_column_name(name) for name in X.columns}
            raw = {*form.raw} <= names or not {*self.columns} <= names
        if not raw:
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
    for name in columns:
        if names.count(name) > 1:
            raise UserError(f"{names.count(name)} columns are called {name!r}.")
    return X.set_axis(names, axis=1)[columns]


def _column_name(name: Any) -> str:
    """Return a column's name as text; a number is a grid point."""
    return grid_names([name])[0] if isinstance(name, float) else str(name)


def record_matrix(X: Any, columns: list[str]) -> Array:
    """Return records as an array, the columns of DataFrames by name."""
    if hasattr(X, "columns"):
        table = select_columns(X, columns).to_numpy()
    else:
        # Curves on the model's grid; else X itself.
        table, points = curve_values(X)
        if points is not None and grid_names(points) != columns:
            raise UserError(
                f"X is on {_describe_grid(points)}; the model takes {len(columns)}:"
                f" {columns[0]} .. {columns[-1]}."
            )
    try:
        return np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError("a record holds something that is no number.") from None
