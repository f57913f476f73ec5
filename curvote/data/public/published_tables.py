"""Published tables: churn, strokes, diabetes and employees.

Text categories are coded 0, 1, ... in alphabetical order (capitals first).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from curvote.base.errors import UserError
from curvote.data import raw_files, reader
from curvote.data.columns import Feature, Paths, category_feature, indicator_features
from curvote.data.reader import TableParameters, TableSchema

if TYPE_CHECKING:
    import pandas as pd


_ATTRIBUTE = "the categories of the publisher's attribute list (Kaggle)"
_ALPHABET = "Codes of text categories follow the alphabet; their order has no meaning."
_ROW = "The unit of privacy is one row of the table."

# Bank customers; a balance of 0 is real. The unit of privacy is one customer.
_MOST_LINES = 10
_SCORE = "the range of FICO scores, 300 to 850 (Fair Isaac Corporation)"
_CHURN_AGE = (
    "adults, 18 to 100 years; the centre is the middle of working life, 18 to 67"
)
_TENURE = "whole years as a customer, a decade or more counting as ten (our choice)"
_BALANCE = (
    "up to the deposits insured in the USA, 250000 (12 U.S.C. 1821); the centre is the"
    " deposits insured in the EU, 100000 euros (Directive 2014/49/EU)"
)
_PRODUCTS = "a retail bank's four families: accounts, cards, loans, insurance"
_SALARY = "up to five times the mean full-time pay in the EU, 37900 (Eurostat, 2023)"

_CHURN_SCHEMA = TableSchema(
    features=(
        Feature("CreditScore", "points", 300, 850, _SCORE),
        category_feature("Geography", ("France", "Germany", "Spain"), _ATTRIBUTE),
        category_feature("Gender", ("Female", "Male"), _ATTRIBUTE),
        Feature("Age", "years", 18, 100, _CHURN_AGE, centre=42.5),
        Feature("Tenure", "years", 0, 10, _TENURE, integral=True),
        Feature("Balance", "euros", 0, 250_000, _BALANCE, centre=100_000),
        Feature("NumOfProducts", "products", 1, 4, _PRODUCTS, integral=True),
        Feature("HasCrCard", "0 or 1", 0, 1, _ATTRIBUTE, integral=True),
        Feature("IsActiveMember", "0 or 1", 0, 1, _ATTRIBUTE, integral=True),
        Feature("EstimatedSalary", "euros a year", 0, 200_000, _SALARY),
    ),
    label="Exited",
    labels={"0": 0, "1": 1},
    classes=("stays", "leaves"),
    ignored=("RowNumber", "CustomerId", "Surname"),
    marks=(),
    possible={
        "CreditScore": (0.0, 1000.0),
        "Age": (0.0, 125.0),
        "Tenure": (0.0, 100.0),
        "Balance": (0.0, 1e9),
        "NumOfProducts": (1.0, 100.0),
        "HasCrCard": (0.0, 1.0),
        "IsActiveMember": (0.0, 1.0),
        "EstimatedSalary": (0.0, 1e9),
    },
)
# Conflict marks of a merge begin a line; a patch adds its plus signs anywhere.
_MARKS = re.compile(rb"^(<{7}|={7}|>{7}|\|{7})|\+\+\+")


class ChurnParameters(TableParameters, title="Parameters"):
    """Settings of ``source:``; the published file has no gap and no repeat."""

    name: Literal["churn"] = "churn"


class _Churn(reader.PublishedTable[ChurnParameters]):
    Parameters = ChurnParameters
    file, title = "churn", "Bank customer churn (Kaggle, Churn_Modelling.csv)"
    schema = _CHURN_SCHEMA
    notes = (
        "The unit of privacy is one customer.",
        "A balance of 0 is real, not missing.",
        _ALPHABET,
    )

    def read(self, file: str, data: bytes) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return cells and numbers, indexed by RowNumber.

        UserError: also for the marks that a bad merge left.
        """
        lines = [i for i, row in enumerate(data.split(b"\n"), 1) if _MARKS.search(row)]
        if lines:
            lines_text = ", ".join(map(str, lines[:_MOST_LINES]))
            raise UserError(
                f"{len(lines)} lines carry marks of a merge or a patch (<<<<<<<,"
                " =======, >>>>>>>, +++):"
                f" {lines_text}{', ...' * (len(lines) > _MOST_LINES)}."
                " This copy was damaged by version control; take the publisher's file."
            )
        frame, table = super().read(file, data)
        column = frame["RowNumber"]
        rows = np.arange(1, len(column) + 1)
        wrong = column.to_numpy() != rows.astype(str)
        if wrong.any():
            first = int(np.argmax(wrong))
            raise UserError(
                f"RowNumber does not count the {len(rows)} rows from 1 up: it is"
                f" {column.iloc[first]!r} instead of {rows[first]} on line"
                f" {column.index[first]}. A row was added, lost or moved in this copy."
            )
        return frame, table.set_axis(rows, axis="index")


# Persons, 249 of them with a stroke. The unit of privacy is one person.
_WITHOUT_BMI = 201
_STROKE_AGE = "a human life of up to 100 years; the centre is its middle"
_STROKE_GLUCOSE = (
    "serious hypoglycaemia is below 54 mg/dL, a hyperglycaemic crisis above 250 mg/dL;"
    " the centre is where prediabetes begins, fasting (American Diabetes Association)"
)
_STROKE_BMI = (
    "12 is about the limit of survival of adults (Henry 1990), above 60 is super-super"
    " obesity (bariatric surgery); the centre is where overweight begins (WHO)"
)

_STROKE_SCHEMA = TableSchema(
    features=(
        category_feature("gender", ("Female", "Male", "Other"), _ATTRIBUTE),
        Feature("age", "years", 0, 100, _STROKE_AGE),
        Feature("hypertension", "0 or 1", 0, 1, _ATTRIBUTE, integral=True),
        Feature("heart_disease", "0 or 1", 0, 1, _ATTRIBUTE, integral=True),
        category_feature("ever_married", ("No", "Yes"), _ATTRIBUTE),
        category_feature(
            "work_type",
            ("Govt_job", "Never_worked", "Private", "Self-employed", "children"),
            _ATTRIBUTE,
        ),
        category_feature("Residence_type", ("Rural", "Urban"), _ATTRIBUTE),
        Feature("avg_glucose_level", "mg/dL", 50, 300, _STROKE_GLUCOSE, centre=100),
        Feature("bmi", "kg/m^2", 12, 60, _STROKE_BMI, centre=25),
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
    possible={
        "age": (0.0, 125.0),
        "hypertension": (0.0, 1.0),
        "heart_disease": (0.0, 1.0),
        "avg_glucose_level": (1.0, 3000.0),
        "bmi": (5.0, 260.0),
    },
)


class StrokeParameters(TableParameters, title="Parameters"):
    """Settings of ``source:``; ``missing`` is about body mass index alone."""

    name: Literal["stroke"] = "stroke"


class _Stroke(reader.PublishedTable[StrokeParameters]):
    Parameters = StrokeParameters
    file, title = "stroke", "Stroke Prediction (Kaggle, fedesoriano)"
    schema = _STROKE_SCHEMA

    def size(self, parameters: StrokeParameters) -> int | None:
        rows = raw_files.find(self.file).rows
        return rows - _WITHOUT_BMI * (parameters.missing == "drop")

    def read(self, file: str, data: bytes) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return cells and numbers, indexed by the publisher's ids."""
        frame, table = super().read(file, data)
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
        return frame, table.set_axis(column.to_numpy(dtype=np.int64), axis="index")

    def title_and_notes(
        self, parameters: StrokeParameters, prepared: reader.PreparedTable
    ) -> reader.TitleAndNotes:
        n, strokes = len(prepared.labels), int(prepared.labels.sum())
        baseline = f"always saying 'no stroke' is right for {1 - strokes / n:.1%}"
        return self.title, [
            "The unit of privacy is one person.",
            f"{strokes} of {n} persons had a stroke: {baseline}.",
            _ALPHABET,
            "'Unknown' smoking is a category of its own.",
        ]


# Pima women: the NIDDK table, and an enlarged copy of it (``healthcare``), most of
# whose rows are repeats. Zero means "missing" in Glucose, BloodPressure, SkinThickness,
# Insulin and BMI. Source: Smith et al. (1988), Using the ADAP learning algorithm to
# forecast the onset of diabetes mellitus, Proc. Symp. Computer Applications in Medical
# Care, 261-265.
_FILES = {"healthcare": "diabetes", "pima": "pima"}
_PIMA_DISTINCT = {"healthcare": 778, "pima": 768}
_TITLE = {
    "healthcare": "Healthcare diabetes (an enlarged copy of Pima Indians diabetes)",
    "pima": "Pima Indians diabetes (NIDDK)",
}
_PIMA_NOTES = {
    "healthcare": [
        _ROW,
        "All 768 rows of the Pima table are among its 778 distinct rows.",
    ],
    "pima": [_ROW],
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
_DIABETES_AGE = (
    "adults; surveys such as NHANES group those above 80 to 85. Centre: screening for"
    " diabetes begins at 35 (American Diabetes Association)"
)

_ZERO = (0.0,)
_DIABETES_SCHEMA = TableSchema(
    features=(
        Feature("Pregnancies", "times", 0, 20, _PREGNANCIES, centre=3, integral=True),
        Feature("Glucose", f"mg/dL in plasma, {_ORAL}", 40, 250, _GLUCOSE, 140, _ZERO),
        Feature("BloodPressure", "mmHg, diastolic", 40, 130, _PRESSURE, 70, _ZERO),
        Feature("SkinThickness", "mm, triceps skinfold", 2, 50, _SKIN, 23.5, _ZERO),
        Feature("Insulin", f"mu U/mL in serum, {_ORAL}", 0, 830, _INSULIN, 91, _ZERO),
        Feature("BMI", "kg/m2", 12, 70, _BMI, 30, _ZERO),
        Feature("DiabetesPedigreeFunction", "score", 0, 2.5, _PEDIGREE, centre=0.4),
        Feature("Age", "years", 18, 90, _DIABETES_AGE, centre=35, integral=True),
    ),
    label="Outcome",
    labels={"0": 0, "1": 1},
    classes=("no diabetes", "diabetes"),
    # What a human being and the instrument can yield at all, with 0 for "missing".
    possible={
        "Pregnancies": (0.0, 30.0),
        "Glucose": (0.0, 2000.0),
        "BloodPressure": (0.0, 300.0),
        "SkinThickness": (0.0, 200.0),
        "Insulin": (0.0, 5000.0),
        "BMI": (0.0, 200.0),
        "DiabetesPedigreeFunction": (0.0, 20.0),
        "Age": (0.0, 125.0),
    },
)


class DiabetesParameters(TableParameters, title="Parameters"):
    """Settings of ``source:``: which table, and its policies."""

    name: Literal["diabetes"] = "diabetes"
    variant: Literal["healthcare", "pima"] = "healthcare"


class _Diabetes(reader.PublishedTable[DiabetesParameters]):
    Parameters = DiabetesParameters
    schema = _DIABETES_SCHEMA

    def files(self, parameters: DiabetesParameters) -> tuple[str, ...]:
        return (_FILES[parameters.variant],)

    def size(self, parameters: DiabetesParameters) -> int | None:
        """Return the published number of clients, None if rows are dropped."""
        if parameters.missing == "drop":
            return None
        if parameters.duplicates == "distinct":
            return _PIMA_DISTINCT[parameters.variant]
        return raw_files.find(_FILES[parameters.variant]).rows

    def title_and_notes(
        self, parameters: DiabetesParameters, prepared: reader.PreparedTable
    ) -> reader.TitleAndNotes:
        return _TITLE[parameters.variant], _PIMA_NOTES[parameters.variant]

    def layout(self, file: str) -> TableSchema:
        """Return the schema of a raw file: only the enlarged copy has a column Id."""
        enlarged = file == _FILES["healthcare"]
        return replace(self.schema, ignored=("Id",)) if enlarged else self.schema


def one_hot(
    frame: pd.DataFrame, schema: TableSchema
) -> tuple[pd.DataFrame, TableSchema]:
    """Return table and schema with a 0/1 feature for each category of a feature.

    One person changes up to 2 of these coordinates for each categorical feature. A
    missing category is missing in each of them.
    """
    columns: dict[str, Any] = {}
    for feature in schema.features:
        codes = frame[feature.name]
        for code, indicator in enumerate(indicator_features(feature)):
            columns[indicator.name] = (codes == code).astype(float).where(codes.notna())
        if not feature.categories:
            columns[feature.name] = codes
    columns[schema.label] = frame[schema.label]
    return type(frame)(columns), one_hot_schema(schema)


def one_hot_schema(schema: TableSchema) -> TableSchema:
    """Return ``schema`` with a 0/1 feature for each category of a feature."""
    spread = tuple(
        feature for f in schema.features for feature in indicator_features(f) or (f,)
    )
    return replace(schema, features=spread)


# Employees of a company in Bangalore, Pune and New Delhi: who stays, who leaves.
_EMPLOYEE_DISTINCT = 2764
_ENCODINGS = {
    "codes": "Each text category is an integer code in alphabetical order, which sets"
    " an order and distances that it does not have; one person changes 1 coordinate of"
    " each categorical feature.",
    "one_hot": "Each text category is a feature of 0 and 1: one person changes up to 2"
    " coordinates of each categorical feature, by 1 each, and noise for a whole record"
    " must be scaled for all of them.",
}

_LIST_NAME = "the publisher's list of categories"
_JOINING = (
    "published in 2023; employees stay with an employer for 4.1 years in the median (US"
    " Bureau of Labor Statistics, Employee Tenure 2022), and the lower bound allows"
    " about three times as long"
)
_TIER = "the publisher's description: three tiers of salary"
_EMPLOYEE_AGE = (
    "adults; of the employees of a large Indian company 1.1 % are older than 50."
    " Centre: 53 % of them are younger than 30 (Tata Consultancy Services, annual"
    " report 2023)"
)
_EXPERIENCE = (
    "ten years make an expert (Ericsson, Krampe, Tesch-Roemer 1993); more counts as ten"
)
_EMPLOYEE_SCHEMA = TableSchema(
    features=(
        category_feature("Education", ("Bachelors", "Masters", "PHD"), _LIST_NAME),
        Feature("JoiningYear", "calendar year", 2011, 2023, _JOINING, integral=True),
        category_feature("City", ("Bangalore", "New Delhi", "Pune"), _LIST_NAME),
        Feature("PaymentTier", "tier, 1 to 3", 1, 3, _TIER, integral=True),
        Feature("Age", "years", 18, 50, _EMPLOYEE_AGE, centre=30, integral=True),
        category_feature("Gender", ("Female", "Male"), _LIST_NAME),
        category_feature("EverBenched", ("No", "Yes"), _LIST_NAME),
        Feature(
            "ExperienceInCurrentDomain", "years", 0, 10, _EXPERIENCE, integral=True
        ),
    ),
    label="LeaveOrNot",
    labels={"0": 0, "1": 1},
    classes=("stays", "leaves"),
    possible={
        "JoiningYear": (1900.0, 2100.0),
        "PaymentTier": (1.0, 3.0),
        "Age": (10.0, 125.0),
        "ExperienceInCurrentDomain": (0.0, 100.0),
    },
)


class EmployeeParameters(TableParameters, title="Parameters"):
    """Settings of ``source:``: the encoding, and the tables' policies."""

    name: Literal["employee"] = "employee"
    encoding: Literal["codes", "one_hot"] = "codes"


class _Employee(reader.PublishedTable[EmployeeParameters]):
    Parameters = EmployeeParameters
    file, title = "employee", "Employees (stay or leave)"
    schema = _EMPLOYEE_SCHEMA

    def size(self, parameters: EmployeeParameters) -> int | None:
        """Return the published number of clients; no value is missing."""
        distinct = parameters.duplicates == "distinct"
        return _EMPLOYEE_DISTINCT if distinct else super().size(parameters)

    def width(self, parameters: EmployeeParameters) -> int:
        coded = parameters.encoding == "codes"
        return len((self.schema if coded else one_hot_schema(self.schema)).features)

    def title_and_notes(
        self, parameters: EmployeeParameters, prepared: reader.PreparedTable
    ) -> reader.TitleAndNotes:
        return self.title, [_ROW, _ENCODINGS[parameters.encoding]]

    def load_features(
        self, parameters: EmployeeParameters, paths: Paths
    ) -> reader.Coded:
        coded = super().load_features(parameters, paths)
        return coded if parameters.encoding == "codes" else one_hot(*coded)


CHURN = _Churn()
STROKE = _Stroke()
DIABETES = _Diabetes()
EMPLOYEE = _Employee()
