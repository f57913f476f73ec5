"""NHANES 2013-2014: a woman's movement over the 24 hours, and whether her HDL is low.

The format is SAS's technical note TS-140: cards of 80 bytes, then rows of IBM floating
point numbers and text, padded with blanks to a whole card. It has no row count.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.chain.settings import Strict
from curvote.data import columns, raw_files, reader
from curvote.data.columns import ClientColumns, Feature, Paths
from curvote.data.raw_files import DamagedError, read

if TYPE_CHECKING:
    import pandas as pd

    from curvote.data.raw_files import Source


CHUNK = 100_000
CARD = 80
# pandas turns an exact zero into 16**-65, the least positive IBM number.
ZERO_BELOW = 1e-70

_LIBRARY = b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!"
_LIBRARY_8 = b"HEADER RECORD*******LIBV8"
_MEMBER = b"HEADER RECORD*******MEMBER  HEADER RECORD!!!!!!!"
_NAMES = b"HEADER RECORD*******NAMESTR HEADER RECORD!!!!!!!"
_COMPRESSED = b"**COMPRESSED**"
_NAME_SIZES = (b"140", b"136", b"135")


@dataclass(frozen=True)
class Column:
    """A required numeric column, and the range of its possible values.

    ``integral`` columns hold whole numbers and become int64, unless values may be
    ``missing``; the others are float64 with NaN for a missing value.
    """

    name: str
    lower: float = -inf
    upper: float = inf
    integral: bool = False
    missing: bool = False


def read_columns(data: bytes, columns: Sequence[Column]) -> pd.DataFrame:
    """Return the ``columns`` of the table in ``data``, one row a record.

    Raises:
        UserError: see `read_chunks`.
    """
    import pandas as pd

    return pd.concat(read_chunks(data, columns), ignore_index=True)


def read_chunks(
    data: bytes, columns: Sequence[Column], size: int = CHUNK
) -> Iterator[pd.DataFrame]:
    """Yield the ``columns`` of the table in ``data``, at most ``size`` rows at a time.

    Text that spells a number counts as that number, an empty cell as missing. Beside
    ``data`` itself only one chunk is held.

    Raises:
        UserError: another format or version, a truncated or damaged file, several
            tables in one, a missing column; values that cannot be, of all columns at
            once, in the first chunk that has some.
    """
    reader = _open_table(data, size)
    _check_names(reader.columns, [column.name for column in columns])
    start = 0
    for frame in reader:
        yield _check_columns(frame, columns, start)
        start += len(frame)


def _open_table(data: bytes, size: int) -> Any:
    import pandas as pd

    first = data[:CARD]
    if first.startswith(_LIBRARY_8):
        raise UserError(
            "it is a SAS transport file of version 8; only version 5 (the XPORT engine"
            " of SAS) can be read."
        )
    if _COMPRESSED in first:
        raise UserError("it was written by PROC CPORT; the XPORT engine is needed.")
    if not first.startswith(_LIBRARY):
        raise UserError(f"it is no SAS transport file: it starts with {first[:24]!r}.")
    if len(data) % CARD:
        raise UserError(
            f"it is truncated: {len(data)} bytes are no whole number of {CARD}-byte"
            " cards."
        )
    complete = data[3 * CARD :].startswith(_MEMBER) and data[7 * CARD :].startswith(
        _NAMES
    )
    if not complete or data[4 * CARD - 5 : 4 * CARD - 2] not in _NAME_SIZES:
        raise UserError("its SAS transport header is damaged or breaks off.")
    try:
        reader: Any = pd.read_sas(
            io.BytesIO(data), format="xport", encoding="ISO-8859-1", chunksize=size
        )
    except (ValueError, TypeError, LookupError, ArithmeticError, struct.error) as error:
        raise UserError(f"its SAS transport header is damaged: {error}.") from error
    # pandas takes eight blanks anywhere in the last card for padding: a row is lost.
    reader.nobs = _count_rows(data, reader.record_start, reader.record_length)
    return reader


def _count_rows(data: bytes, start: int, width: int) -> int:
    """Return the number of rows of ``width`` bytes; blanks fill up the last card."""
    if width < 1:
        raise UserError("its SAS transport header is damaged: rows have no width.")
    if data.find(_MEMBER, start) >= 0:
        raise UserError("it holds several tables; one is expected.")
    last = data[max(start, len(data) - CARD) :]
    end = len(data) - len(last) + len(last.rstrip(b" "))
    rows = ceil((end - start) / width)
    if rows < 1:
        raise UserError("it has no rows.")
    rest = len(data) - start - rows * width
    if not 0 <= rest < CARD:
        raise UserError(
            f"it is truncated or damaged: row {rows} of {width} bytes does not end"
            " where the file does."
        )
    return rows


def _check_names(names: Sequence[str], needed: Sequence[str]) -> None:
    if missing := [name for name in needed if name not in names]:
        raise UserError(
            f"wrong schema: no column {', '.join(missing)}; there are"
            f" {', '.join(names)}."
        )
    if len(set(names)) < len(names):
        raise UserError("wrong schema: two columns have the same name.")


def _check_columns(
    frame: pd.DataFrame, columns: Sequence[Column], start: int
) -> pd.DataFrame:
    """Return the ``columns`` as numbers; ``start`` rows came before this chunk."""
    numbers, problems = {}, []
    for column in columns:
        values, unreadable = _parse_numbers(frame[column.name])
        problems += list(_find_violations(column, values, unreadable, start))
        numbers[column.name] = values
    if problems:
        raise UserError(
            f"wrong values in rows {start + 1} to {start + len(frame)}:"
            f" {'; '.join(problems)}."
        )
    integral = [c.name for c in columns if c.integral and not c.missing]
    return type(frame)(numbers).astype(dict.fromkeys(integral, np.int64))


def _parse_numbers(
    cells: pd.Series[Any],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return cells as numbers (NaN = missing), and which cannot be read."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(cells.dtype):
        values = cells.to_numpy(dtype=np.float64, copy=True)
        values[np.abs(values) < ZERO_BELOW] = 0.0
        return values, np.zeros(len(values), dtype=np.bool_)
    text = cells.str.strip()
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    return values, np.isnan(values) & (text != "").to_numpy(dtype=np.bool_)


def _find_violations(
    column: Column,
    values: NDArray[np.float64],
    unreadable: NDArray[np.bool_],
    start: int,
) -> Iterator[str]:
    """Yield each kind of violation with its count and its first row."""
    missing = np.isnan(values)
    outside = ~missing & ~((column.lower <= values) & (values <= column.upper))
    kinds = {
        "no number": unreadable,
        "missing": missing & ~unreadable & (not column.missing),
        f"not within [{column.lower:g}, {column.upper:g}]": outside,
        "not whole": ~missing & ~outside & column.integral & (values % 1 != 0),
    }
    for kind, where in kinds.items():
        if where.any():
            first = int(where.argmax())
            yield (
                f"{column.name} is {kind} in {where.sum()}, the first row"
                f" {start + first + 1} ({values[first]:g})"
            )


DAY_HOURS = 24
COLUMNS = (
    Column("SEQN", 1, integral=True),
    Column("PAXDAYH", 1, 9, integral=True),
    Column("PAXSSNHP", 0),
    Column("PAXVMH", 0, 60, missing=True),
    Column("PAXNWMH", 0, 60, missing=True),
    Column("PAXMTSH", 0, missing=True),
)


def check_hours(data: bytes) -> int:
    """Return the number of rows; a UserError if schema or values are wrong."""
    return sum(len(chunk) for chunk in read_chunks(data, COLUMNS))


def mean_days(
    data: bytes,
    wanted: NDArray[np.int64],
    valid_minutes: int,
    valid_hours: int,
    days: int,
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return SEQN (n,), ascending, and curves (n, 24) in MIMS an hour.

    Of the ``wanted`` SEQN those with at least ``days`` valid days that cover every
    hour. A day needs ``valid_hours`` hours that count, an hour ``valid_minutes``
    minutes that are valid and worn. The file is read by chunks; only the hours of
    ``wanted`` are held.

    Raises:
        UserError: see `curvote.data.public.nhanes.read_chunks`.
    """
    import pandas as pd

    parts = []
    for chunk in read_chunks(data, COLUMNS):
        inside = chunk["PAXDAYH"].between(2, 8) & chunk["SEQN"].isin(wanted)
        parts.append(chunk[inside])
    hours = _complete_days(pd.concat(parts))
    rates = _hourly_rates(hours, valid_minutes)
    valid = np.isfinite(rates).sum(axis=1) >= valid_hours
    owners = hours["SEQN"].to_numpy(dtype=np.int64)[::DAY_HOURS]
    return _average_days(owners[valid], rates[valid], days)


def _complete_days(hours: pd.DataFrame) -> pd.DataFrame:
    """Return the days of exactly 24 hours; a repeated hour is dropped."""
    ordered = hours.sort_values(["SEQN", "PAXDAYH", "PAXSSNHP"])
    samples = ordered.groupby(["SEQN", "PAXDAYH"])["PAXSSNHP"]
    rows, different = samples.transform("size"), samples.transform("nunique")
    return ordered[(rows == DAY_HOURS) & (different == DAY_HOURS)]


def _hourly_rates(hours: pd.DataFrame, valid_minutes: int) -> FloatArray:
    """Return MIMS an hour (days, 24), NaN for an invalid hour."""
    names = ("PAXMTSH", "PAXVMH", "PAXNWMH")
    total, minutes, unworn = hours[[*names]].to_numpy().T.reshape(3, -1, DAY_HOURS)
    counts = minutes - unworn >= valid_minutes  # False where one of them is missing
    rates: FloatArray = np.full(total.shape, np.nan)
    np.divide(60 * total, minutes, out=rates, where=counts)
    return rates


def _average_days(
    owners: NDArray[np.int64], rates: FloatArray, days: int
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return persons with enough ``days`` and all hours, and hourly means."""
    ids, row, day_counts = np.unique(owners, return_inverse=True, return_counts=True)
    totals, counts = np.zeros((2, len(ids), DAY_HOURS))
    np.add.at(totals, row, np.nan_to_num(rates))
    np.add.at(counts, row, np.isfinite(rates))
    enough = (day_counts >= days) & (counts > 0).all(axis=1)
    return ids[enough], totals[enough] / counts[enough]


SIMULATED = False
HOURS, HEADER = "nhanes-hours", "nhanes-header"
DEMOGRAPHICS, HDL = "nhanes-demographics", "nhanes-hdl"
ACTIVITY = "nhanes-activity-2013"
FILES = (HOURS, HEADER, DEMOGRAPHICS, HDL)

CLASSES = ("low HDL", "healthy HDL")
HEALTHY = 50.0  # mg/dL, women (Turk et al. 2009, as in MRMA section 7.2)
BOUNDS = {
    "lower": 0.0,
    "upper": 3600.0,
    "why": (
        "MIMS are areas under absolute acceleration, so never negative; 3600 an hour is"
        " 60 in every minute, four times the mean rate of the median day at the most"
        " active age, 20706 MIMS (Belcher et al. 2021, DOI"
        " 10.1249/MSS.0000000000002726)"
    ),
}

_SEQN = Column("SEQN", 1, integral=True)
_COLUMNS = {
    HEADER: (_SEQN, Column("PAXSTS", 0, missing=True)),
    DEMOGRAPHICS: (
        _SEQN,
        Column("RIAGENDR", 1, 2, integral=True),
        Column("RIDAGEYR", 0, 80, integral=True),  # 80 stands for 80 or older
    ),
    HDL: (_SEQN, Column("LBDHDD", 1, 500, missing=True)),
}
_MEASURES = [
    *("PAXMTSM", "log10PAXMTSM", "AC", "log10AC", "actisteps", "adeptsteps"),
    *("oaksteps", "scrfsteps", "scsslsteps", "vssteps", "vsrevsteps"),
]
_SUMMARIES = [f"{s}_{m}" for m in _MEASURES for s in ("total", "peak1", "peak30")]
_FILE = "what the file can hold"
_SUMMARY_COLUMNS = (
    Feature("SEQN", "", 1, 1e6, _FILE, integral=True),
    Feature("age_in_years_at_screening", "years", 0, 80, _FILE),
    Feature("num_valid_days", "days", 0, 9, _FILE, integral=True),
)
_ACTIVITY = reader.TableSchema(
    features=_SUMMARY_COLUMNS,
    label="gender",
    labels={"Male": 0, "Female": 1},
    classes=("male", "female"),
    ignored=("valid_accel", "inclusion_type", *_SUMMARIES),
    possible={x.name: (x.lower, x.upper) for x in _SUMMARY_COLUMNS},
)


class Parameters(Strict):
    """Settings of ``source:``: which hours, days and women count."""

    name: Literal["nhanes"] = "nhanes"
    valid_minutes: Annotated[int, Field(ge=1, le=60, strict=True)] = 30
    valid_hours: Annotated[int, Field(ge=1, le=24, strict=True)] = 16
    days: Annotated[int, Field(ge=1, le=7, strict=True)] = 1


@dataclass(frozen=True, eq=False)
class Cohort:
    """The women: ``ids`` (n,), ``curves`` (n, 24) in MIMS an hour, ``labels`` (n,).

    ``dropped`` counts the women aged 20 or older who lack something, by what it is.
    """

    ids: NDArray[np.int64]
    curves: NDArray[np.float64]
    labels: NDArray[np.int64]
    dropped: dict[str, int]


files, width = columns.always(FILES), columns.always(24)
size = columns.always(None)  # how many have valid days is known from the file only


def facts(parameters: Parameters, paths: Paths) -> dict[str, Any]:
    """Return the public metadata of the curves as plain JSON values."""
    cohort = load_cohort(parameters, paths)
    n, distinct = len(cohort.ids), len(np.unique(cohort.curves, axis=0))
    lost = ", ".join(f"{what} {count}" for what, count in cohort.dropped.items())
    return columns.facts(
        columns.class_counts(cohort.labels, CLASSES),
        CLASSES,
        title="NHANES 2013-2014: hourly MIMS of women aged 20 or older",
        grid=list(range(24)),
        domain=[0, 23],
        unit="hour",
        bounds=BOUNDS,
        notes=[
            (
                "A curve is the mean over days 2 to 8 with 24 hours, of which at least"
                f" {parameters.valid_hours} had at least {parameters.valid_minutes}"
                f" valid worn minutes; at least {parameters.days} such days. Women aged"
                f" 20 or older who lack something: {lost}."
            ),
            (
                f"The published cohort has 2410 women, 64.6 % healthy; here are {n},"
                f" {cohort.labels.mean():.1%} healthy. Its wear rule is not published."
            ),
            "Survey weights are not used: results do not speak for the population.",
        ],
        duplicates={"policy": "keep", "rows": n, "distinct": distinct},
        missing={"policy": "drop", "counts": cohort.dropped},
    )


def clients(parameters: Parameters, paths: Paths) -> ClientColumns:
    """Return the columns client_id (SEQN), label, group (n,) and curve (n, 24)."""
    cohort = load_cohort(parameters, paths)
    ids, labels = cohort.ids.copy(), cohort.labels.copy()
    return columns.client_columns(cohort.curves.copy(), labels, ids)


def check(data: bytes, source: Source) -> None:
    """Raise a UserError unless ``source.name`` has the published schema and rows."""
    if source.name == ACTIVITY:
        rows = len(read_activity(data))
    elif source.name == HOURS:
        rows = check_hours(data)
    else:
        rows = len(_read_persons(source.name, data))
    columns.check_rows(rows, source)


def load_cohort(parameters: Parameters, paths: Paths) -> Cohort:
    """Return the women with HDL and enough valid days, in the order of their SEQN.

    Raises:
        UserError: a damaged file, a wrong schema, or no woman is left.
    """
    stamps = ((paths[name], raw_files.stamp(paths[name])) for name in FILES)
    return _load_cohort(parameters, *stamps)


def women_hdl(demographics: pd.DataFrame, hdl: pd.DataFrame) -> pd.Series[float]:
    """Return the HDL (mg/dL, NaN if missing) of women aged 20 or older, by SEQN.

    Both tables are indexed by SEQN, with RIAGENDR and RIDAGEYR, and with LBDHDD.
    """
    adult = (demographics["RIAGENDR"] == 2) & (demographics["RIDAGEYR"] >= 20)
    return hdl["LBDHDD"].reindex(demographics.index[adult].sort_values())


def read_activity(data: bytes) -> pd.DataFrame:
    """Return SEQN, age, valid days and gender (1 female) of the derived table.

    It has no time of day: it serves to check the choice of women.
    """
    frame = reader.parse_table(data, _ACTIVITY)
    return _check_distinct(reader.check_table(frame, _ACTIVITY))


# Facts and clients come from one reading: the hour file has 145 MB.
@lru_cache(maxsize=1)
def _load_cohort(
    parameters: Parameters, *states: tuple[Path, tuple[int, ...]]
) -> Cohort:
    paths = dict(zip(FILES, (path for path, _ in states), strict=True))
    people = {}
    for name in (HEADER, DEMOGRAPHICS, HDL):
        with _name_file(paths[name]):
            people[name] = _read_persons(name, read(paths[name]))
    chosen = women_hdl(people[DEMOGRAPHICS], people[HDL])
    measured = chosen.dropna()
    worn = people[HEADER].index[people[HEADER]["PAXSTS"] == 1]
    monitored = measured[measured.index.isin(worn)]
    rules = parameters.model_dump(exclude={"name"})
    wanted = monitored.index.to_numpy(dtype=np.int64)
    with _name_file(paths[HOURS]):
        ids, curves = mean_days(read(paths[HOURS]), wanted, **rules)
    if not len(ids):
        raise UserError(
            "no woman aged 20 or older has HDL and enough valid hours and days; lower"
            " valid_minutes, valid_hours or days."
        )
    dropped = {
        "HDL": len(chosen) - len(measured),
        "monitor data": len(measured) - len(monitored),
        "enough valid days": len(monitored) - len(ids),
    }
    labels = (monitored.reindex(ids) >= HEALTHY).to_numpy().astype(np.int64)
    return Cohort(ids, curves, labels, dropped)


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    """Add the file's name to a UserError."""
    try:
        yield
    except DamagedError:  # names its path already
        raise
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _read_persons(name: str, data: bytes) -> pd.DataFrame:
    """Return the columns needed of ``name``, indexed by SEQN, which is unique."""
    return _check_distinct(read_columns(data, _COLUMNS[name])).set_index("SEQN")


def _check_distinct(frame: pd.DataFrame) -> pd.DataFrame:
    repeated = frame["SEQN"][frame["SEQN"].duplicated()]
    if len(repeated):
        raise UserError(
            f"{len(repeated)} rows repeat a participant, the first SEQN"
            f" {repeated.iloc[0]:g}."
        )
    return frame
