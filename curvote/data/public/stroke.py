"""Stroke Prediction (fedesoriano, Kaggle): ten features of 5110 persons, 249 strokes.

Text categories are coded 0, 1, ... in alphabetical order (capitals first). The unit of
privacy is one person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from curvote.base.errors import UserError
from curvote.data import raw_files, reader
from curvote.data.columns import Feature, category_feature

if TYPE_CHECKING:
    import pandas as pd


SIMULATED = False
_WITHOUT_BMI = 201

_ATTRIBUTE = "the categories of the publisher's attribute list (Kaggle)"
_AGE = "a human life of up to 100 years; the centre is its middle"
_GLUCOSE = (
    "serious hypoglycaemia is below 54 mg/dL, a hyperglycaemic crisis above 250 mg/dL;"
    " the centre is where prediabetes begins, fasting (American Diabetes Association)"
)
_BMI = (
    "12 is about the limit of survival of adults (Henry 1990), above 60 is super-super"
    " obesity (bariatric surgery); the centre is where overweight begins (WHO)"
)

SCHEMA = reader.TableSchema(
    features=(
        category_feature("gender", ("Female", "Male", "Other"), _ATTRIBUTE),
        Feature("age", "years", 0, 100, _AGE),
        Feature("hypertension", "0 or 1", 0, 1, _ATTRIBUTE, integral=True),
        Feature("heart_disease", "0 or 1", 0, 1, _ATTRIBUTE, integral=True),
        category_feature("ever_married", ("No", "Yes"), _ATTRIBUTE),
        category_feature(
            "work_type",
            ("Govt_job", "Never_worked", "Private", "Self-employed", "children"),
            _ATTRIBUTE,
        ),
        category_feature("Residence_type", ("Rural", "Urban"), _ATTRIBUTE),
        Feature("avg_glucose_level", "mg/dL", 50, 300, _GLUCOSE, centre=100),
        Feature("bmi", "kg/m^2", 12, 60, _BMI, centre=25),
        category_feature(
            "smoking_status",
            ("Unknown", "formerly smoked", "never smoked", "smokes"),
            _ATTRIBUTE,
        ),
    ),
    label="stroke",
    labels={"0": 0, "1": 1},
    classes=("no stroke", "stroke"),
    ignored=("id",),
    marks=("N/A", ""),
)
ALLOWED = {
    "age": (0.0, 125.0),
    "hypertension": (0.0, 1.0),
    "heart_disease": (0.0, 1.0),
    "avg_glucose_level": (1.0, 3000.0),
    "bmi": (5.0, 260.0),
}


class Parameters(reader.TableParameters):
    """Settings of ``source:``; ``missing`` is about body mass index alone."""

    name: Literal["stroke"] = "stroke"


class _Stroke(reader.PublishedTable[Parameters]):
    file, title = "stroke", "Stroke Prediction (Kaggle, fedesoriano)"
    schema, allowed = SCHEMA, ALLOWED

    def size(self, parameters: Parameters) -> int | None:
        rows = raw_files.find(self.file).rows
        return rows - _WITHOUT_BMI * (parameters.missing == "drop")

    def check_frame(
        self, frame: pd.DataFrame, schema: reader.TableSchema
    ) -> pd.DataFrame:
        """Return the numbers, indexed by the publisher's ids."""
        table = super().check_frame(frame, schema)
        gaps = table.drop(columns="bmi").isna().sum()
        if gaps.any():
            gap_text = ", ".join(f"{name} {n}" for name, n in gaps[gaps > 0].items())
            raise UserError(
                f"in the published file only bmi has gaps; here {gap_text}, too."
            )
        column = frame["id"]
        wrong = ~column.str.fullmatch("[0-9]{1,9}") | column.duplicated()
        if wrong.any():
            line = int(column.index[wrong.to_numpy()][0])
            raise UserError(
                f"column id: {int(wrong.sum())} values are repeated or no whole number,"
                f" the first on line {line}: {column[line]!r}."
            )
        return table.set_axis(column.to_numpy(dtype=np.int64), axis="index")

    def title_and_notes(
        self, parameters: Parameters, prepared: reader.PreparedTable
    ) -> reader.TitleAndNotes:
        n, strokes = len(prepared.labels), int(prepared.labels.sum())
        baseline = f"always saying 'no stroke' is right for {1 - strokes / n:.1%}"
        return self.title, [
            "The unit of privacy is one person.",
            f"{strokes} of {n} persons had a stroke: {baseline}.",
            "Codes of text categories follow the alphabet; their order has no meaning.",
            "'Unknown' smoking is a category of its own.",
        ]


TABLE = _Stroke()
files, size, width = TABLE.files, TABLE.size, TABLE.width
facts, clients, check = TABLE.facts, TABLE.clients, TABLE.check
