"""Diabetes among Pima women: the NIDDK table, and an enlarged copy of it.

A zero means "missing" in Glucose, BloodPressure, SkinThickness, Insulin and BMI. Most
rows of the enlarged copy (``healthcare``) are repeats. The unit of privacy is one row.
Source: Smith et al. (1988), Using the ADAP learning algorithm to forecast the onset of
diabetes mellitus, Proc. Symp. Computer Applications in Medical Care, 261-265.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from curvote.data import raw_files, reader
from curvote.data.columns import Feature

SIMULATED = False
FILES = {"healthcare": "diabetes", "pima": "pima"}
DISTINCT = {"healthcare": 778, "pima": 768}
TITLE = {
    "healthcare": "Healthcare diabetes (an enlarged copy of Pima Indians diabetes)",
    "pima": "Pima Indians diabetes (NIDDK)",
}
NOTES = {
    "healthcare": [
        "The unit of privacy is one row of the table.",
        "All 768 rows of the Pima table are among its 778 distinct rows.",
    ],
    "pima": ["The unit of privacy is one row of the table."],
}

_ORAL = "2 hours after oral glucose"
_PREGNANCIES = (
    "great grand multiparity begins at 10 births; the upper bound is twice that."
    " Centre: US women of the 1950s and 1960s had about 3 (NCHS, Vital Statistics)"
)
_GLUCOSE = (
    "below 54 is serious hypoglycaemia, 200 and more means diabetes. Centre: normal"
    " tolerance ends at 140 (American Diabetes Association, Standards of Care)"
)
_PRESSURE = (
    "above 120 is a hypertensive crisis, below 60 is low. Centre: the middle of the"
    " normal 60 to 80 (ACC/AHA guideline 2017)"
)
_SKIN = (
    "NHANES III, 7870 women: 1.9 to 48.5, the limit of the caliper; centre: their mean"
    " (Institute of Medicine, Dietary Reference Intakes for Energy, table H-1)"
)
_INSULIN = (
    "the reference range at 2 hours is 16 to 166 (Medscape, Insulin); resistance to"
    " insulin raises it, so the upper bound is five times 166. Centre: the middle of"
    " that range"
)
_BMI = (
    "about 12 is the limit of survival (Henry 1990); NHANES III, women: 11.7 to 79.6."
    " Centre: obesity begins at 30 (WHO)"
)
_PEDIGREE = (
    "(sum K (88 - age at diagnosis) + 20) / (sum K (age - 14) + 50) over relatives with"
    " and without diabetes, K = 1/2 for the nearest (Smith et al. 1988): four nearest"
    " diagnosed at 38 give 2.4. Centre: no relatives"
)
_AGE = (
    "adults; surveys such as NHANES group those above 80 to 85. Centre: screening for"
    " diabetes begins at 35 (American Diabetes Association)"
)

_ZERO = (0.0,)
SCHEMA = reader.TableSchema(
    features=(
        Feature("Pregnancies", "times", 0, 20, _PREGNANCIES, centre=3, integral=True),
        Feature("Glucose", f"mg/dL in plasma, {_ORAL}", 40, 250, _GLUCOSE, 140, _ZERO),
        Feature("BloodPressure", "mmHg, diastolic", 40, 130, _PRESSURE, 70, _ZERO),
        Feature("SkinThickness", "mm, triceps skinfold", 2, 50, _SKIN, 23.5, _ZERO),
        Feature("Insulin", f"mu U/mL in serum, {_ORAL}", 0, 830, _INSULIN, 91, _ZERO),
        Feature("BMI", "kg/m2", 12, 70, _BMI, 30, _ZERO),
        Feature("DiabetesPedigreeFunction", "score", 0, 2.5, _PEDIGREE, centre=0.4),
        Feature("Age", "years", 18, 90, _AGE, centre=35, integral=True),
    ),
    label="Outcome",
    labels={"0": 0, "1": 1},
    classes=("no diabetes", "diabetes"),
)
# What a human being and the instrument can yield at all, with 0 for "missing".
ALLOWED = {
    "Pregnancies": (0.0, 30.0),
    "Glucose": (0.0, 2000.0),
    "BloodPressure": (0.0, 300.0),
    "SkinThickness": (0.0, 200.0),
    "Insulin": (0.0, 5000.0),
    "BMI": (0.0, 200.0),
    "DiabetesPedigreeFunction": (0.0, 20.0),
    "Age": (0.0, 125.0),
}


class Parameters(reader.TableParameters):
    """Settings of ``source:``: which table, and its policies."""

    name: Literal["diabetes"] = "diabetes"
    variant: Literal["healthcare", "pima"] = "healthcare"


class _Diabetes(reader.PublishedTable[Parameters]):
    schema, allowed = SCHEMA, ALLOWED

    def files(self, parameters: Parameters) -> tuple[str, ...]:
        return (FILES[parameters.variant],)

    def size(self, parameters: Parameters) -> int | None:
        """Return the published number of clients, None if rows are dropped."""
        if parameters.missing == "drop":
            return None
        if parameters.duplicates == "distinct":
            return DISTINCT[parameters.variant]
        return raw_files.find(FILES[parameters.variant]).rows

    def title_and_notes(
        self, parameters: Parameters, prepared: reader.PreparedTable
    ) -> reader.TitleAndNotes:
        return TITLE[parameters.variant], NOTES[parameters.variant]

    def layout(self, file: str) -> reader.TableSchema:
        """Return the schema of a raw file: only the enlarged copy has a column Id."""
        enlarged = file == FILES["healthcare"]
        return replace(SCHEMA, ignored=("Id",)) if enlarged else SCHEMA


TABLE = _Diabetes()
files, size, width = TABLE.files, TABLE.size, TABLE.width
facts, clients, check = TABLE.facts, TABLE.clients, TABLE.check
