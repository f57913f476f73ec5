"""Employees of a company in Bangalore, Pune and New Delhi: who stays, who leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from curvote.data import reader
from curvote.data.columns import (
    Feature,
    Paths,
    category_feature,
    indicator_features,
)

if TYPE_CHECKING:
    import pandas as pd


def one_hot(
    frame: pd.DataFrame, schema: reader.TableSchema
) -> tuple[pd.DataFrame, reader.TableSchema]:
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


def one_hot_schema(schema: reader.TableSchema) -> reader.TableSchema:
    """Return ``schema`` with a 0/1 feature for each category of a feature."""
    spread = tuple(
        feature for f in schema.features for feature in indicator_features(f) or (f,)
    )
    return replace(schema, features=spread)


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

_LIST_NAME = "the publisher's list of categories"
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
SCHEMA = reader.TableSchema(
    features=(
        category_feature("Education", ("Bachelors", "Masters", "PHD"), _LIST_NAME),
        Feature("JoiningYear", "calendar year", 2011, 2023, _JOINING, integral=True),
        category_feature("City", ("Bangalore", "New Delhi", "Pune"), _LIST_NAME),
        Feature("PaymentTier", "tier, 1 to 3", 1, 3, _TIER, integral=True),
        Feature("Age", "years", 18, 50, _AGE, centre=30, integral=True),
        category_feature("Gender", ("Female", "Male"), _LIST_NAME),
        category_feature("EverBenched", ("No", "Yes"), _LIST_NAME),
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


class Parameters(reader.TableParameters):
    """Settings of ``source:``: the encoding, and the tables' policies.

    ``codes`` are those of the published tables: Education, City, Gender and
    EverBenched as integers in alphabetical order.
    """

    name: Literal["employee"] = "employee"
    encoding: Literal["codes", "one_hot"] = "codes"


class _Employee(reader.PublishedTable[Parameters]):
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
        self, parameters: Parameters, prepared: reader.PreparedTable
    ) -> reader.TitleAndNotes:
        unit = "The unit of privacy is one row of the table."
        return self.title, [unit, NOTES[parameters.encoding]]

    def load_features(self, parameters: Parameters, paths: Paths) -> reader.Coded:
        coded = super().load_features(parameters, paths)
        return coded if parameters.encoding == "codes" else one_hot(*coded)


TABLE = _Employee()
files, size, width = TABLE.files, TABLE.size, TABLE.width
facts, clients, check = TABLE.facts, TABLE.clients, TABLE.check
