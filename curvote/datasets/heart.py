"""Heart disease at four hospitals (Detrano et al. 1989): seven features a patient.

The UCI files ``processed.*.data`` have 13 features and ``num``; a patient is ill where
num > 0. The unit of privacy is one patient; the group is the hospital.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from numpy.typing import NDArray
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from curvote.datasets.tables import tabular
from curvote.datasets.tables.features import Feature
from curvote.datasets.tables.tabular import Prepared, TableParameters, TableSchema
from curvote.datasets.unpack import read

if TYPE_CHECKING:
    import pandas as pd

    from curvote.datasets.sources import Source

SIMULATED = False
TITLE = "Heart disease at four hospitals (UCI)"
Hospital = Literal["cleveland", "hungarian", "switzerland", "va"]
Rule = Literal["complete_with_restecg", "complete", "all"]
HOSPITALS: tuple[Hospital, ...] = get_args(Hospital)
SEVEN = ("age", "sex", "cp", "exang", "thalach", "oldpeak", "trestbps")
STRIDE = 1000  # more than any hospital has rows: client_id = STRIDE * hospital + row

_CODES = "codes of the data set's description, heart-disease.names (UCI, data set 45)"
_UNUSED = f"{_CODES}; read for the rule and for repeated rows, no feature of a client"
_TEST = "ACC/AHA guideline for exercise testing (Gibbons et al. 2002)"
_AGE = "adults who are sent to coronary angiography: 20 to 90 years"
_PRESSURE = (
    f"80 is shock; above 200 no test is begun: {_TEST}; the centre is where"
    " hypertension begins (ACC/AHA 2017)"
)
_RATE = "60 is a usual rate at rest, 220 - age (Fox et al. 1971) the rate at most"
_ST = f"1 mm of ST depression is abnormal, more than 2 mm may end a test: {_TEST}"


def _code(name: str, lower: int, upper: int, why: str = _CODES) -> Feature:
    unit = f"code, {lower} to {upper}"
    return Feature(name, unit, lower, upper, why, whole=True)


FEATURES = (
    Feature("age", "years", 20, 90, _AGE),
    _code("sex", 0, 1),
    _code("cp", 1, 4),
    Feature("trestbps", "mm Hg", 80, 220, _PRESSURE, centre=130, missing=(0.0,)),
    Feature("chol", "mg/dL", 100, 400, _UNUSED, missing=(0.0,)),
    _code("fbs", 0, 1, _UNUSED),
    _code("restecg", 0, 2, _UNUSED),
    Feature("thalach", "beats per minute", 60, 220, _RATE),
    _code("exang", 0, 1),
    Feature("oldpeak", "mm", -3, 7, _ST, centre=1),
    _code("slope", 1, 3, _UNUSED),
    _code("ca", 0, 3, _UNUSED),
    _code("thal", 3, 7, _UNUSED),
)
ALLOWED = {f.name: (float(f.lower), float(f.upper)) for f in FEATURES if f.whole} | {
    "age": (0.0, 125.0),
    "trestbps": (0.0, 350.0),
    "chol": (0.0, 2000.0),
    "thalach": (0.0, 350.0),
    "oldpeak": (-20.0, 20.0),
}
_FILE = TableSchema(
    features=FEATURES,
    label="num",
    labels={str(num): int(num > 0) for num in range(5)},
    classes=("no disease", "disease"),
    marks=("?", "", "-9", "-9.0", "NaN", "nan"),
    header=False,
)
_BY_NAME = {feature.name: feature for feature in FEATURES}
_CLIENT = replace(_FILE, features=tuple(_BY_NAME[name] for name in SEVEN))

# Rows that each rule leaves of the published files, in the order of HOSPITALS.
_ROWS: dict[Rule, tuple[int, ...]] = {
    "complete_with_restecg": (303, 292, 116, 141),
    "complete": (303, 293, 117, 141),
    "all": (303, 294, 123, 200),
}
_REPEATED = (0, 1, 0, 1)  # complete rows, with restecg
_ZERO_TRESTBPS = (0, 0, 0, 1)  # likewise; the published counts include it

_PUBLISHED = (
    "The counts of the paper (Cleveland 303, Hungary 292, Long Beach 141, Switzerland"
    " 116) are those of rule complete_with_restecg and duplicates keep."
)
_SPECIAL: dict[Hospital, str] = {
    "switzerland": "In Switzerland 115 of 123 patients are ill: accuracy says little.",
    "va": "The blood pressure 0 of one patient in Long Beach means missing, but counts"
    " as given in the paper and here in the rule.",
}


class Parameters(TableParameters):
    """What ``source:`` may say: hospitals, and which rows become clients.

    ``complete_with_restecg`` keeps the rows in which the seven features and restecg
    are given, as Auddy, Cai and Chakraborty (section 6.2) did without saying so;
    ``complete`` asks for the seven; ``all`` leaves gaps to ``missing``.
    """

    name: Literal["heart"] = "heart"
    hospitals: Annotated[tuple[Hospital, ...], Field(min_length=1)] = HOSPITALS
    features: Literal["seven"] = "seven"
    rule: Rule = "complete_with_restecg"
    groups: Literal["hospital"] | None = None

    @field_validator("hospitals")
    @classmethod
    def _each_once(cls, hospitals: tuple[Hospital, ...]) -> tuple[Hospital, ...]:
        """Return them in the order of HOSPITALS, whatever order was given."""
        if len(set(hospitals)) < len(hospitals):
            raise PydanticCustomError("repeated", "name each hospital once")
        return tuple(name for name in HOSPITALS if name in hospitals)


@dataclass(frozen=True)
class _Chosen:
    """Rows of one hospital: in its file, by the rule, and the distinct among them."""

    hospital: Hospital
    rows: int
    ruled: int
    distinct: int


def files(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the raw files, one a hospital."""
    return tuple(f"heart-{hospital}" for hospital in parameters.hospitals)


def size(parameters: Parameters) -> int:
    """Return how many clients there are by the published counts, loading nothing."""
    drop = parameters.missing == "drop"
    rule = "complete" if drop and parameters.rule == "all" else parameters.rule
    indices = [HOSPITALS.index(hospital) for hospital in parameters.hospitals]
    n = sum(_ROWS[rule][i] for i in indices)
    if parameters.duplicates == "distinct":
        n -= sum(_REPEATED[i] for i in indices)
    return n - sum(_ZERO_TRESTBPS[i] for i in indices) * drop


def width(_parameters: Parameters) -> int:
    """Return how many features a patient has by the public schema."""
    return len(_CLIENT.features)


def facts(parameters: Parameters, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return what is public about the patients, as plain JSON values."""
    prepared, chosen = _prepared(parameters, paths)
    notes = _notes(parameters, chosen)
    return tabular.facts(_CLIENT, prepared, TITLE, notes, parameters)


def clients(
    parameters: Parameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return client_id, label, group (n,) and curve (n, 7); groups index HOSPITALS.

    client_id is 1000 times the hospital's index, plus the row in its file from 1 on.
    """
    columns = _prepared(parameters, paths)[0].columns()
    return columns | {"group": columns["client_id"] // STRIDE}


def check(data: bytes, source: Source) -> None:
    """Raise a UserError unless schema, rows and class counts are those published."""
    schema = _schema(source.name.removeprefix("heart-"))
    tabular.check(data, source, schema, ALLOWED)


def _schema(hospital: str) -> TableSchema:
    """Return the layout of one file; Hungary says only whether there is disease."""
    return replace(_FILE, labels={"0": 0, "1": 1}) if hospital == "hungarian" else _FILE


def _prepared(
    parameters: Parameters, paths: Mapping[str, Path]
) -> tuple[Prepared, list[_Chosen]]:
    """Return the clients; rows repeat where all 14 columns do, in one hospital."""
    import pandas as pd

    found = [
        _choose(parameters, hospital, paths[f"heart-{hospital}"])
        for hospital in parameters.hospitals
    ]
    rows = pd.concat([frame for frame, _ in found])[[*SEVEN, "num"]]
    counts = [one for _, one in found]
    return replace(
        tabular.prepare(rows, _CLIENT, "keep", parameters.missing),
        rows=sum(one.ruled for one in counts),
        distinct=sum(one.distinct for one in counts),
    ), counts


def _choose(
    parameters: Parameters, hospital: Hospital, path: Path
) -> tuple[pd.DataFrame, _Chosen]:
    """Return the chosen rows of one file, indexed by client_id, and their counts."""
    schema = _schema(hospital)
    frame = tabular.checked(tabular.parse(read(path), schema), schema, ALLOWED)
    frame.index += STRIDE * HOSPITALS.index(hospital)
    ruled = frame.dropna(subset=_needed(parameters.rule))
    distinct = ruled.drop_duplicates()
    chosen = distinct if parameters.duplicates == "distinct" else ruled
    return chosen, _Chosen(hospital, len(frame), len(ruled), len(distinct))


def _needed(rule: Rule) -> list[str]:
    """Return the columns that ``rule`` asks for; 0 counts as given, as published."""
    if rule == "all":
        return []
    return [*SEVEN, "restecg"] if rule == "complete_with_restecg" else [*SEVEN]


def _notes(parameters: Parameters, chosen: list[_Chosen]) -> list[str]:
    kept = ", ".join(f"{one.hospital} {one.ruled} of {one.rows}" for one in chosen)
    distinct = ", ".join(f"{one.hospital} {one.distinct}" for one in chosen)
    notes = [
        "The unit of privacy is one patient.",
        f"Rows by the rule {parameters.rule}: {kept}; distinct among them: {distinct}.",
        _PUBLISHED,
    ]
    special = [note for name, note in _SPECIAL.items() if name in parameters.hospitals]
    return notes + special
