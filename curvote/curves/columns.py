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
from curvote.curves.basis import STEP_TOLERANCE, Array, Projection, check_grid
from curvote.curves.smoothing import smooth, smooth_missing

# A grid point may be off by such a part of a step, and is still the same.
_GRID_TOLERANCE = 1e-6
_SUGGESTED_POINTS = 101
_LEAST_VALUES = 2  # one value tells nothing of a curve's course


@dataclass(frozen=True, eq=False)
class CurveValues:
    """Records as columns: ``values`` (n, C T), their grid (T,) and C channels' names.

    ``grid`` is None where nothing says it, ``channels`` are empty for a single one;
    ``smoothed`` says that they were measured at other times.
    """

    values: Any
    grid: Array | None = None
    channels: tuple[str, ...] = ()
    smoothed: bool = False


def curve_values(
    X: Any,
    grid: ArrayLike | None = None,
    model: Array | None = None,
    *,
    project: bool = False,
) -> CurveValues:
    """Return the values of an FDataGrid or FDataIrregular; else X itself.

    ``grid`` is what is stated of the grid, and an FDataGrid on another one is a
    UserError, as are FDataBasis and surfaces; the cure is named. An FDataIrregular is
    smoothed on it, or on that of a ``model``; so is an FDataGrid whose points are not
    equidistant, if it is to be projected onto functions.
    """
    given_grid = None if grid is None else validate.finite(grid=grid)
    if hasattr(X, "coefficients") and hasattr(X, "basis"):
        raise UserError(
            "X is an FDataBasis: coefficients of a basis of its own. Give the curves"
            " on an equidistant grid,"
            f" X.to_grid({_linspace_code(X, _SUGGESTED_POINTS)})."
        )
    irregular = hasattr(X, "start_indices")
    if not irregular and not (hasattr(X, "data_matrix") and hasattr(X, "grid_points")):
        return CurveValues(X, given_grid)
    if X.dim_domain > 1:
        raise UserError(
            f"X holds surfaces, over {X.dim_domain} variables; give curves, over one."
        )
    channels = enumerate(X.coordinate_names, 1) if X.dim_codomain > 1 else ()
    names = tuple(str(name or f"channel {place}") for place, name in channels)
    onto = model if given_grid is None else given_grid
    if irregular:
        onto = _irregular_grid(X) if onto is None else onto
        rows = X.start_indices, np.asarray(X.points)[:, 0], np.asarray(X.values)
        return _smooth_rows(*rows, onto, names)
    points, n = np.asarray(X.grid_points[0], dtype=np.float64), len(X.data_matrix)
    steps = np.diff(points)
    even = np.allclose(steps, np.median(steps), rtol=STEP_TOLERANCE)
    if onto is None:
        onto = np.linspace(points[0], points[-1], len(points))
    if project and not even and np.allclose(points[[0, -1]], onto[[0, -1]]):
        rows = len(points) * np.arange(n), np.tile(points, n), np.vstack(X.data_matrix)
        return _smooth_rows(*rows, onto, names)
    if given_grid is not None and not same_grid(points, given_grid):
        raise UserError(
            f"X is on {_describe_grid(points)}; grid states"
            f" {_describe_grid(given_grid)}. Leave"
            " grid out: an FDataGrid brings its own."
        )
    values = np.asarray(X.data_matrix).transpose(0, 2, 1)
    return CurveValues(values.reshape(n, -1), points, names)


def _irregular_grid(X: Any) -> Array:
    """Return a grid on the stated domain of an FDataIrregular."""
    start, stop = X.domain_range[0]
    if (start, stop) == (X.points.min(), X.points.max()):
        raise UserError(
            "X is an FDataIrregular whose domain is where its own measurements begin"
            " and end, which is somebody's. Both sides must know the domain without X:"
            " state the grid that curves are read on, such as"
            f" grid={_linspace_code(X, _SUGGESTED_POINTS)} with ends from the protocol"
            " of the study."
        )
    return np.linspace(start, stop, _SUGGESTED_POINTS)


def _smooth_rows(
    begins: Any, times: Array, values: Array, grid: Array, names: tuple[str, ...]
) -> CurveValues:
    """Return curves, measurements from ``begins`` (n,) on, smoothed on a grid."""
    points = check_grid(grid)
    beyond = (times < points[0]) | (times > points[-1])
    if beyond.any():
        raise UserError(
            f"X has {int(beyond.sum())} measurements between {times.min():g} and"
            f" {times.max():g} that are not on the domain, {points[0]:g} to"
            f" {points[-1]:g}. Write X.restrict(({points[0]:g}, {points[-1]:g})), or"
            " state a wider grid."
        )
    if np.isinf(values).any() or not np.isfinite(times).all():
        raise UserError("X holds an infinite value; a missing one is NaN.")
    starts = np.append(begins, len(times))
    there = np.cumsum(~np.isnan(values), axis=0)
    counts = np.diff(np.vstack([np.zeros_like(there[:1]), there])[starts], axis=0)
    _refuse_few(counts, names)
    return CurveValues(smooth(points, starts, times, values), points, names, True)


def _refuse_few(counts: NDArray[np.int64], channels: tuple[str, ...]) -> None:
    """Refuse curves of which a channel has too few values, by ``counts`` (n, C)."""
    few = np.argwhere(counts < _LEAST_VALUES)
    if len(few):
        (curve, place), further = few[0], len(few) - 1
        what = f" of {channels[place]}" if channels else ""
        number = "one value" if counts[curve, place] else "no value"
        more = f" ({further} more such)" if further else ""
        raise UserError(
            f"curve {curve} has {number}{what}{more}; each takes at least"
            f" {_LEAST_VALUES}{what}. Leave such curves out at fit and at predict."
        )


def fill_missing(values: Array, onto: Projection) -> Array:
    """Return curves (n, C T) with those smoothed that have missing points (NaN).

    What is projected ``onto`` no functions of a grid stays. A curve of which fewer than
    two values of a channel are there is a UserError.
    """
    there, grid = ~np.isnan(values), onto.grid
    if grid is None or there.all() or values.shape[1:] != onto.matrix.shape[1:]:
        return values
    by_channel = there.reshape(len(values), -1, len(grid))
    _refuse_few(by_channel.sum(axis=2), onto.channels)
    return smooth_missing(grid, values)


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


def refuse_other_channels(
    X: Any, channels: tuple[str, ...], learned: tuple[str, ...]
) -> None:
    """Refuse curves with other coordinates, or in another order, than the model's."""
    unnamed = len(channels) == len(learned) and None in getattr(
        X, "coordinate_names", [None]
    )
    if channels != learned and not unnamed:
        has, wanted = (", ".join(names) or "one" for names in (channels, learned))
        raise UserError(
            f"the coordinates of X are {has}; the model learned from curves with"
            f" {wanted}, in this order."
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
    def projection(self) -> Projection | None:
        """The projection of curves, where the records are such."""
        return None

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
            return np.asarray(answer(record_matrix(X, self.columns, self.projection)))
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


def grid_names(grid: Iterable[float], channels: Iterable[str] = ()) -> list[str]:
    """Return the column names of raw curves: their grid points as text.

    Those of several channels begin with the channel's name: ``x 0.5``.
    """
    points = [f"{point:.12g}" for point in grid]
    return [f"{name} {point}" for name in channels for point in points] or points


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


def record_matrix(X: Any, columns: list[str], onto: Projection | None = None) -> Array:
    """Return records as an array, the columns of DataFrames by name.

    Curves that are projected ``onto`` functions may have missing points, or times of
    their own.
    """
    grid, channels = (onto.grid, onto.channels) if onto else (None, ())
    if hasattr(X, "columns"):
        table = select_columns(X, columns).to_numpy()
    else:
        # Curves on the model's grid; else X itself.
        curves = curve_values(X, model=grid, project=grid is not None)
        table, points = curves.values, curves.grid
        refuse_other_channels(X, curves.channels, channels)
        if points is not None and grid_names(points, channels) != columns:
            raise UserError(
                f"X is on {_describe_grid(points)}; the model takes {len(columns)}:"
                f" {columns[0]} .. {columns[-1]}."
            )
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError("a record holds something that is no number.") from None
    return fill_missing(values, onto) if onto else values
