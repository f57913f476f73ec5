"""NHANES 2013-2014 as a data set: settings, cohort and metadata.

The wrist monitor's hourly MIMS (Monitor-Independent Movement Summary) become one curve
a participant, the mean over her complete valid days: see `nhanes_hours`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.chain.settings import Strict
from curvote.datasets import frames, nhanes_hours, xport
from curvote.datasets.tables import tabular
from curvote.datasets.tables.features import Feature
from curvote.datasets.tables.tabular import TableSchema
from curvote.datasets.unpack import DamagedError, read
from curvote.datasets.xport import Column
from curvote.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from curvote.datasets.sources import Source

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
_ACTIVITY = TableSchema(
    features=(
        Feature("SEQN", "", 1, 1e6, _FILE, integral=True),
        Feature("age_in_years_at_screening", "years", 0, 80, _FILE),
        Feature("num_valid_days", "days", 0, 9, _FILE, integral=True),
    ),
    label="gender",
    labels={"Male": 0, "Female": 1},
    classes=("male", "female"),
    ignored=("valid_accel", "inclusion_type", *_SUMMARIES),
)


class Parameters(Strict):
    """Settings of ``source:``: which hours, days and women count.

    An hour counts with at least ``valid_minutes`` minutes that are valid and worn (30:
    half of it), a day with at least ``valid_hours`` such hours (16, as in GGIR), a
    woman with at least ``days`` such days (1) that cover every hour of the day.
    """

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


def files(_parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the raw files in data/sources.toml."""
    return FILES


size = frames.no_size  # how many women have valid days is known from the file only


def width(_parameters: Parameters) -> int:
    """Return how many hours a curve has by the public schema."""
    return 24


def facts(parameters: Parameters, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return the public metadata of the curves as plain JSON values."""
    cohort = load_cohort(parameters, paths)
    n, distinct = len(cohort.ids), len(np.unique(cohort.curves, axis=0))
    return frames.facts(
        frames.class_counts(cohort.labels, CLASSES),
        CLASSES,
        title="NHANES 2013-2014: hourly MIMS of women aged 20 or older",
        grid=list(range(24)),
        domain=[0, 23],
        unit="hour",
        bounds=BOUNDS,
        notes=list(_cohort_notes(parameters, cohort)),
        duplicates={"policy": "keep", "rows": n, "distinct": distinct},
        missing={"policy": "drop", "counts": cohort.dropped},
    )


def clients(
    parameters: Parameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return the columns client_id (SEQN), label, group (n,) and curve (n, 24)."""
    cohort = load_cohort(parameters, paths)
    ids, labels = cohort.ids.copy(), cohort.labels.copy()
    return frames.client_columns(cohort.curves.copy(), labels, ids)


def check(data: bytes, source: Source) -> None:
    """Raise a UserError unless ``source.name`` has the published schema and rows."""
    if source.name == ACTIVITY:
        rows = len(read_activity(data))
    elif source.name == HOURS:
        rows = nhanes_hours.check_hours(data)
    else:
        rows = len(_read_persons(source.name, data))
    frames.check_rows(rows, source)


def load_cohort(parameters: Parameters, paths: Mapping[str, Path]) -> Cohort:
    """Return the women with HDL and enough valid days, in the order of their SEQN.

    Raises:
        UserError: a damaged file, a wrong schema, or no woman is left.
    """
    return _load_cohort(
        parameters, tuple((name, *_file_state(paths[name])) for name in FILES)
    )


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
    frame = tabular.parse_table(data, _ACTIVITY)
    limits = {
        feature.name: (feature.lower, feature.upper) for feature in _ACTIVITY.features
    }
    return _check_distinct(tabular.check_table(frame, _ACTIVITY, limits))


def _file_state(path: Path) -> tuple[Path, int, int]:
    stat = path.stat() if path.exists() else None
    return (path, stat.st_size, stat.st_mtime_ns) if stat else (path, 0, 0)


# Facts and clients come from one reading: the hour file has 145 MB.
@lru_cache(maxsize=1)
def _load_cohort(
    parameters: Parameters, states: tuple[tuple[str, Path, int, int], ...]
) -> Cohort:
    paths = {name: path for name, path, _, _ in states}
    people = {
        name: _read_people(name, paths[name]) for name in (HEADER, DEMOGRAPHICS, HDL)
    }
    chosen = women_hdl(people[DEMOGRAPHICS], people[HDL])
    measured = chosen.dropna()
    worn = people[HEADER].index[people[HEADER]["PAXSTS"] == 1]
    monitored = measured[measured.index.isin(worn)]
    ids, curves = _mean_days(paths[HOURS], monitored, parameters)
    dropped = {
        "HDL": len(chosen) - len(measured),
        "monitor data": len(measured) - len(monitored),
        "enough valid days": len(monitored) - len(ids),
    }
    labels = (monitored.reindex(ids) >= HEALTHY).to_numpy().astype(np.int64)
    return Cohort(ids, curves, labels, dropped)


def _read_people(name: str, path: Path) -> pd.DataFrame:
    """Return a table of one row a participant, indexed by SEQN."""
    with _name_file(path):
        return _read_persons(name, read(path))


def _mean_days(
    path: Path, monitored: pd.Series[float], parameters: Parameters
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return SEQN (n,) and mean days (n, 24) of ``monitored`` persons."""
    rules = parameters.model_dump(exclude={"name"})
    wanted = monitored.index.to_numpy(dtype=np.int64)
    with _name_file(path):
        ids, curves = nhanes_hours.mean_days(read(path), wanted, **rules)
    if not len(ids):
        raise UserError(
            "no woman aged 20 or older has HDL and enough valid hours and days; lower"
            " valid_minutes, valid_hours or days."
        )
    return ids, curves


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
    return _check_distinct(xport.read_columns(data, _COLUMNS[name])).set_index("SEQN")


def _check_distinct(frame: pd.DataFrame) -> pd.DataFrame:
    repeated = frame["SEQN"][frame["SEQN"].duplicated()]
    if len(repeated):
        raise UserError(
            f"{len(repeated)} rows repeat a participant, the first SEQN"
            f" {repeated.iloc[0]:g}."
        )
    return frame


def _cohort_notes(parameters: Parameters, cohort: Cohort) -> Iterator[str]:
    lost = ", ".join(f"{what} {n}" for what, n in cohort.dropped.items())
    yield (
        "A curve is the mean over days 2 to 8 with 24 hours, of which at least"
        f" {parameters.valid_hours} had at least {parameters.valid_minutes} valid worn"
        f" minutes; at least {parameters.days} such days. Women aged 20 or older who"
        f" lack something: {lost}."
    )
    healthy = cohort.labels.mean()
    yield (
        f"The published cohort has 2410 women, 64.6 % healthy; here are"
        f" {len(cohort.labels)}, {healthy:.1%} healthy. Its wear rule is not published."
    )
    yield "Survey weights are not used: results do not speak for the population."
