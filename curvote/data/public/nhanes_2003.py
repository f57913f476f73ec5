"""NHANES 2003-2006: twelve 2-hour bins of log activity, and whether HDL is low.

A derived table of adults aged 30 to 84 (Leroux et al. 2019): the hip monitor's minute
counts become ln(1 + count), summed over 2 hours, averaged over a person's valid days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from curvote.base.errors import UserError
from curvote.chain.settings import Strict
from curvote.data import columns, reader
from curvote.data.columns import ClientColumns, Feature, Paths
from curvote.data.raw_files import read

if TYPE_CHECKING:
    import pandas as pd

    from curvote.data.raw_files import Source


SIMULATED = False
FILE = "nhanes-activity-2003"
CLASSES = ("low HDL", "healthy HDL")
HEALTHY = {"male": 40.0, "female": 50.0}  # mg/dL
BINS = [f"tlac.{i}" for i in range(1, 13)]
UPPER = float(120 * np.log(1 + 32767))  # 1247.7
WHY = (
    "120 minutes times ln(1 + count); counts are never negative, and the monitor"
    " (ActiGraph 7164) stores at most 32767 a minute"
)
_FILE = "what the file can hold"
_BINS = [Feature(name, "log counts", 0, UPPER, WHY) for name in BINS]
_COLUMNS = (
    Feature("seqn", "", 1, 1e6, _FILE, integral=True),
    Feature("age", "years", 30, 85, _FILE),
    Feature("lbdhdd", "mg/dL", 1, 500, _FILE),
    *_BINS,
)
_SCHEMA = reader.TableSchema(
    features=_COLUMNS,
    label="gender",
    labels={"Male": 0, "Female": 1},
    classes=("male", "female"),
    ignored=("sddsrvyr", "bmi", "lbxtc", "sys", "tac", "tlac", "mvpa", "wt", "st"),
    possible={x.name: (x.lower, x.upper) for x in _COLUMNS},
)
# What a model learns a number from: who somebody is, and the day's activity.
_HUMAN = "adults of this table; the publisher groups those above 84"
_BY_PERSON = (
    Feature("age", "years", 30, 85, _HUMAN, centre=50),
    Feature("female", "0 or 1", 0, 1, "one of two", integral=True),
    *_BINS,
)
_HDL = Feature(
    *("hdl_mg_dl", "mg/dL", 20, 120),
    "below 20 is a severe deficiency, above 100 very high (clinical reference ranges);"
    " whatever lies beyond counts as lying on the bound",
    centre=50,
)
_CURVE_METADATA = {
    "grid": list(range(1, 24, 2)),
    "domain": [1, 23],
    "unit": "hour",
    "bounds": {"lower": 0.0, "upper": UPPER, "why": WHY},
}
_FEATURE_METADATA = {
    "grid": list(range(1, len(_BY_PERSON) + 1)),
    "domain": [1, len(_BY_PERSON)],
    "unit": "number",
    "features": [feature.to_json() for feature in _BY_PERSON],
    "target": _HDL.to_json(),
}


class Parameters(Strict):
    """Settings of ``source:``: which persons' curves."""

    name: Literal["nhanes-2003"] = "nhanes-2003"
    sex: Literal["female", "male", "both"] = "female"
    minimum_age: Annotated[int, Field(ge=30, le=84, strict=True)] = 30
    target: Literal["hdl_mg_dl"] | None = None


files = columns.always((FILE,))
size = columns.always(None)  # who has both HDL and activity is known from the file only


def width(parameters: Parameters) -> int:
    """Return how many bins, or features, there are by the public schema."""
    return len(_BY_PERSON if parameters.target else BINS)


def facts(parameters: Parameters, paths: Paths) -> dict[str, Any]:
    """Return the public metadata of the curves as plain JSON values."""
    people, dropped = _load_people(parameters, paths)
    n, distinct = len(people), len(people.drop_duplicates(BINS))
    lost = ", ".join(f"{what} {count}" for what, count in dropped.items())
    who = {"female": "women", "male": "men", "both": "adults"}[parameters.sex]
    return columns.facts(
        columns.class_counts(_labels(people), CLASSES),
        CLASSES,
        title=f"NHANES 2003-2006: 2-hour log activity of {who}",
        **(_FEATURE_METADATA if parameters.target else _CURVE_METADATA),
        notes=[
            (
                f"Adults aged {parameters.minimum_age} or older; left out because"
                f" something is missing: {lost}. Hip-worn counts, not comparable with"
                " wrist MIMS; survey weights are not used."
            )
        ],
        duplicates={"policy": "keep", "rows": n, "distinct": distinct},
        missing={"policy": "drop", "counts": dropped},
    )


def clients(parameters: Parameters, paths: Paths) -> ClientColumns:
    """Return the columns client_id (seqn), label, group (n,) and curve (n, 12).

    With a target also that, (n,), and curve (n, 14) has age and sex before the bins.
    """
    people, _ = _load_people(parameters, paths)
    curves = people[BINS].to_numpy(dtype=np.float64)
    ids = people["seqn"].to_numpy(dtype=np.int64)
    if parameters.target is None:
        return columns.client_columns(curves, _labels(people), ids)
    person = people[["age", "gender"]].to_numpy(dtype=np.float64)
    hdl = people["lbdhdd"].to_numpy(dtype=np.float64)
    return columns.client_columns(
        np.hstack([person, curves]), _labels(people), ids, target=hdl
    )


def check(data: bytes, source: Source) -> None:
    """Raise a UserError unless the table has the published schema and rows."""
    columns.check_rows(len(_check_frame(reader.parse_table(data, _SCHEMA))), source)


def _load_people(
    parameters: Parameters, paths: Paths
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the complete rows of the chosen persons, and the missing counts.

    A row that lacks both HDL and activity counts in both.
    """
    frame = _check_frame(reader.parse_table(read(paths[FILE]), _SCHEMA))
    chosen = frame[frame["age"] >= parameters.minimum_age]
    if parameters.sex != "both":
        chosen = chosen[chosen["gender"] == (parameters.sex == "female")]
    inactive = chosen[BINS].isna().any(axis=1)
    dropped = {
        "HDL": int(chosen["lbdhdd"].isna().sum()),
        "activity": int(inactive.sum()),
    }
    people = chosen[chosen["lbdhdd"].notna() & ~inactive]
    if people.empty:
        raise UserError(
            f"nobody is left: sex {parameters.sex}, minimum_age"
            f" {parameters.minimum_age}, with HDL and activity."
        )
    return people, dropped


def _check_frame(frame: pd.DataFrame) -> pd.DataFrame:
    people = reader.check_table(frame, _SCHEMA)
    repeated = people.index[people["seqn"].duplicated()]
    if len(repeated) or people["seqn"].isna().any():
        raise UserError(
            f"{len(repeated)} lines repeat a participant or name none"
            f" (first: {repeated[:1].tolist()})."
        )
    return people


def _labels(people: pd.DataFrame) -> NDArray[np.int64]:
    thresholds = np.array([HEALTHY["male"], HEALTHY["female"]])
    healthy = people["lbdhdd"] >= thresholds[people["gender"]]
    return healthy.to_numpy().astype(np.int64)
