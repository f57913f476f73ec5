"""Employee attrition table, with text categories as codes or as 0/1 features.

239 of 2525 distinct vectors of features carry both labels, which bounds the accuracy.
The unit of privacy is one row. Source: Elmetwally (2023), Employee dataset, Kaggle.
"""

from __future__ import annotations

from typing import Literal

from curvote.datasets.tables.features import Feature, category_feature
from curvote.datasets.tables.one_hot import one_hot, one_hot_schema
from curvote.datasets.tables.published import (
    Coded,
    Paths,
    PublishedTable,
    TitleAndNotes,
)
from curvote.datasets.tables.tabular import PreparedTable, TableParameters, TableSchema

SIMULATED = False
DISTINCT = 2764
NOTES = {
    "codes": "Each text category is an integer code in alphabetical order, which sets"
    " an order and distances that it does not have; one person changes 1 coordinate of"
    " each categorical feature.",
    "one_hot": "Each text category is a feature of 0 and 1: one person changes up to 2"
    " coordinates of each categorical feature, by 1 each, and noise for a whole record"
    " must be scaled for all of them.",
}

_STATED = "the publisher's list of categories"
_JOINING = (
    "published in 2023; employees stay with an employer for 4.1 years in the median (US"
    " Bureau of Labor Statistics, Employee Tenure 2022), and the lower bound allows"
    " about three times as long"
)
_TIER = "the publisher's description: three tiers of salary"
_AGE = (
    "adults; of the employees of a large Indian company 1.1 % are older than 50."
    " Centre: 53 % of them are younger than 30 (Tata Consultancy Services, annual"
    " report 2023)"
)
_EXPERIENCE = (
    "ten years make an expert (Ericsson, Krampe, Tesch-Roemer 1993); more counts as ten"
)
SCHEMA = TableSchema(
    features=(
        category_feature("Education", ("Bachelors", "Masters", "PHD"), _STATED),
        Feature("JoiningYear", "calendar year", 2011, 2023, _JOINING, integral=True),
        category_feature("City", ("Bangalore", "New Delhi", "Pune"), _STATED),
        Feature("PaymentTier", "tier, 1 to 3", 1, 3, _TIER, integral=True),
        Feature("Age", "years", 18, 50, _AGE, centre=30, integral=True),
        category_feature("Gender", ("Female", "Male"), _STATED),
        category_feature("EverBenched", ("No", "Yes"), _STATED),
        Feature(
            "ExperienceInCurrentDomain", "years", 0, 10, _EXPERIENCE, integral=True
        ),
    ),
    label="LeaveOrNot",
    labels={"0": 0, "1": 1},
    classes=("stays", "leaves"),
)
ALLOWED = {
    "JoiningYear": (1900.0, 2100.0),
    "PaymentTier": (1.0, 3.0),
    "Age": (10.0, 125.0),
    "ExperienceInCurrentDomain": (0.0, 100.0),
}


class Parameters(TableParameters):
    """Settings of ``source:``: the encoding, and the tables' policies.

    ``codes`` are those of the published tables: Education, City, Gender and
    EverBenched as integers in alphabetical order.
    """

    name: Literal["employee"] = "employee"
    encoding: Literal["codes", "one_hot"] = "codes"


class _Employee(PublishedTable[Parameters]):
    file, title = "employee", "Employees (stay or leave)"
    schema, allowed = SCHEMA, ALLOWED

    def size(self, parameters: Parameters) -> int | None:
        """Return the published number of clients; no value is missing."""
        distinct = parameters.duplicates == "distinct"
        return DISTINCT if distinct else super().size(parameters)

    def width(self, parameters: Parameters) -> int:
        coded = parameters.encoding == "codes"
        return len((SCHEMA if coded else one_hot_schema(SCHEMA)).features)

    def title_and_notes(
        self, parameters: Parameters, prepared: PreparedTable
    ) -> TitleAndNotes:
        unit = "The unit of privacy is one row of the table."
        return self.title, [unit, NOTES[parameters.encoding]]

    def load_features(self, parameters: Parameters, paths: Paths) -> Coded:
        coded = super().load_features(parameters, paths)
        return coded if parameters.encoding == "codes" else one_hot(*coded)


TABLE = _Employee()
files, size, width = TABLE.files, TABLE.size, TABLE.width
facts, clients, check = TABLE.facts, TABLE.clients, TABLE.check
