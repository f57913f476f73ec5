"""Heart disease at four hospitals (Detrano et al. 1989): seven features a patient.

The UCI files ``processed.*.data`` have 13 features and ``num``; a patient is ill where
num > 0. The unit of privacy is one patient; the group is the hospital.
"""

from dataclasses import replace
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from curvote.data import reader
from curvote.data.columns import ClientColumns, Feature, Paths

SIMULATED = False
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


def _code_feature(name: str, lower: int, upper: int, why: str = _CODES) -> Feature:
    unit = f"code, {lower} to {upper}"
    return Feature(name, unit, lower, upper, why, integral=True)


FEATURES = (
    Feature("age", "years", 20, 90, _AGE),
    _code_feature("sex", 0, 1),
    _code_feature("cp", 1, 4),
    Feature("trestbps", "mm Hg", 80, 220, _PRESSURE, centre=130, missing=(0.0,)),
    Feature("chol", "mg/dL", 100, 400, _UNUSED, missing=(0.0,)),
    _code_feature("fbs", 0, 1, _UNUSED),
    _code_feature("restecg", 0, 2, _UNUSED),
    Feature("thalach", "beats per minute", 60, 220, _RATE),
    _code_feature("exang", 0, 1),
    Feature("oldpeak", "mm", -3, 7, _ST, centre=1),
    _code_feature("slope", 1, 3, _UNUSED),
    _code_feature("ca", 0, 3, _UNUSED),
    _code_feature("thal", 3, 7, _UNUSED),
)
_FILE = reader.TableSchema(
    features=FEATURES,
    label="num",
    labels={str(num): int(num > 0) for num in range(5)},
    classes=("no disease", "disease"),
    marks=("?", "", "-9", "-9.0", "NaN", "nan"),
    header=False,
    possible={f.name: (float(f.lower), float(f.upper)) for f in FEATURES if f.integral}
    | {
        "age": (0.0, 125.0),
        "trestbps": (0.0, 350.0),
        "chol": (0.0, 2000.0),
        "thalach": (0.0, 350.0),
        "oldpeak": (-20.0, 20.0),
    },
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


class Parameters(reader.TableParameters):
    """Settings of ``source:``: hospitals, and which rows become clients.

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
    def _sort_hospitals(cls, hospitals: tuple[Hospital, ...]) -> tuple[Hospital, ...]:
        if len(set(hospitals)) < len(hospitals):
            raise PydanticCustomError("repeated", "name each hospital once")
        return tuple(name for name in HOSPITALS if name in hospitals)


class _Heart(reader.PublishedTable[Parameters]):
    title = "Heart disease at four hospitals (UCI)"
    schema = _CLIENT

    def files(self, parameters: Parameters) -> tuple[str, ...]:
        """Return the names of the raw files, one a hospital."""
        return tuple(f"heart-{hospital}" for hospital in parameters.hospitals)

    def size(self, parameters: Parameters) -> int | None:
        return sum(servers(parameters).values())

    def facts(self, parameters: Parameters, paths: Paths) -> dict[str, Any]:
        prepared, sizes = self._load_patients(parameters, paths)
        ruled = ", ".join(f"{name} {n} of {rows}" for name, (rows, n, _) in sizes)
        distinct = ", ".join(f"{name} {n}" for name, (*_, n) in sizes)
        notes = [
            "The unit of privacy is one patient.",
            (
                f"Rows by the rule {parameters.rule}: {ruled}; distinct among them:"
                f" {distinct}."
            ),
            _PUBLISHED,
            *(note for name, note in _SPECIAL.items() if name in parameters.hospitals),
        ]
        metadata = reader.facts(_CLIENT, prepared, self.title, notes, parameters)
        return metadata | {"servers": servers(parameters)}

    def clients(self, parameters: Parameters, paths: Paths) -> ClientColumns:
        """Return the columns; a group is a hospital, numbered as in ``servers``.

        client_id is 1000 times its index in HOSPITALS, plus the row in the file from 1
        on.
        """
        columns = self._load_patients(parameters, paths)[0].columns()
        named = [HOSPITALS.index(hospital) for hospital in parameters.hospitals]
        group = np.searchsorted(named, columns["client_id"] // STRIDE)
        return columns | {"group": group.astype(np.int64)}

    def layout(self, file: str) -> reader.TableSchema:
        """Return the layout of one file; Hungary says only whether there is disease."""
        presence_only = file == "heart-hungarian"
        return replace(_FILE, labels={"0": 0, "1": 1}) if presence_only else _FILE

    def _load_patients(
        self, parameters: Parameters, paths: Paths
    ) -> tuple[reader.PreparedTable, list[tuple[Hospital, tuple[int, int, int]]]]:
        """Return the clients; rows repeat where all 14 columns do, in one hospital.

        Of each hospital also the rows of its file, by the rule, and distinct.
        """
        import pandas as pd

        # A gap in these leaves a row out; 0 counts as a value there.
        restecg = ["restecg"] * (parameters.rule == "complete_with_restecg")
        required = [] if parameters.rule == "all" else [*SEVEN, *restecg]
        frames, sizes = [], []
        for hospital, file in zip(
            parameters.hospitals, self.files(parameters), strict=True
        ):
            frame = self.load(file, paths[file])
            frame.index += STRIDE * HOSPITALS.index(hospital)
            ruled = frame.dropna(subset=required)
            distinct = ruled.drop_duplicates()
            frames.append(distinct if parameters.duplicates == "distinct" else ruled)
            sizes.append((hospital, (len(frame), len(ruled), len(distinct))))
        rows = pd.concat(frames)[[*SEVEN, "num"]]
        return replace(
            reader.prepare_clients(rows, _CLIENT, "keep", parameters.missing),
            rows=sum(n for _, (_, n, _) in sizes),
            distinct=sum(n for _, (*_, n) in sizes),
        ), sizes


def servers(parameters: Parameters) -> dict[str, int]:
    """Return the published number of patients of each hospital."""
    drop = parameters.missing == "drop"
    rule = "complete" if drop and parameters.rule == "all" else parameters.rule
    once = parameters.duplicates == "distinct"
    counts = zip(HOSPITALS, _ROWS[rule], _REPEATED, _ZERO_TRESTBPS, strict=True)
    return {
        hospital: rows - once * repeated - drop * zero
        for hospital, rows, repeated, zero in counts
        if hospital in parameters.hospitals
    }


TABLE = _Heart()
files, size, width = TABLE.files, TABLE.size, TABLE.width
facts, clients, check = TABLE.facts, TABLE.clients, TABLE.check
