"""Bank customer churn (Kaggle, Churn_Modelling.csv): ten features of 10000 customers.

Text categories are coded 0, 1, ... in alphabetical order. A balance of 0 is real. The
unit of privacy is one customer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import numpy as np

from curvote.base.errors import UserError
from curvote.data.columns import Feature, category_feature
from curvote.data.reader import PublishedTable, TableParameters, TableSchema

if TYPE_CHECKING:
    import pandas as pd


SIMULATED = False
MOST_LINES = 10

_ATTRIBUTE = "the categories of the publisher's attribute list (Kaggle)"
_SCORE = "the range of FICO scores, 300 to 850 (Fair Isaac Corporation)"
_AGE = "adults, 18 to 100 years; the centre is the middle of working life, 18 to 67"
_TENURE = "whole years as a customer, a decade or more counting as ten (our choice)"
_BALANCE = (
    "up to the deposits insured in the USA, 250000 (12 U.S.C. 1821); the centre is the"
    " deposits insured in the EU, 100000 euros (Directive 2014/49/EU)"
)
_PRODUCTS = "a retail bank's four families: accounts, cards, loans, insurance"
_SALARY = "up to five times the mean full-time pay in the EU, 37900 (Eurostat, 2023)"

SCHEMA = TableSchema(
    features=(
        Feature("CreditScore", "points", 300, 850, _SCORE),
        category_feature("Geography", ("France", "Germany", "Spain"), _ATTRIBUTE),
        category_feature("Gender", ("Female", "Male"), _ATTRIBUTE),
        Feature("Age", "years", 18, 100, _AGE, centre=42.5),
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
)
ALLOWED = {
    "CreditScore": (0.0, 1000.0),
    "Age": (0.0, 125.0),
    "Tenure": (0.0, 100.0),
    "Balance": (0.0, 1e9),
    "NumOfProducts": (1.0, 100.0),
    "HasCrCard": (0.0, 1.0),
    "IsActiveMember": (0.0, 1.0),
    "EstimatedSalary": (0.0, 1e9),
}
# Conflict marks of a merge begin a line; a patch adds its plus signs anywhere.
_MARKS = re.compile(rb"^(<{7}|={7}|>{7}|\|{7})|\+\+\+")


class Parameters(TableParameters):
    """Settings of ``source:``; the published file has no gap and no repeat."""

    name: Literal["churn"] = "churn"


class _Churn(PublishedTable[Parameters]):
    file, title = "churn", "Bank customer churn (Kaggle, Churn_Modelling.csv)"
    schema, allowed = SCHEMA, ALLOWED
    notes = (
        "The unit of privacy is one customer.",
        "A balance of 0 is real, not missing.",
        "Codes of text categories follow the alphabet; their order has no meaning.",
    )

    def parse(self, data: bytes, schema: TableSchema) -> pd.DataFrame:
        """Return the text cells; UserError for the marks that a bad merge left."""
        lines = [i for i, row in enumerate(data.split(b"\n"), 1) if _MARKS.search(row)]
        if lines:
            lines_text = ", ".join(map(str, lines[:MOST_LINES]))
            raise UserError(
                f"{len(lines)} lines carry marks of a merge or a patch (<<<<<<<,"
                " =======, >>>>>>>, +++):"
                f" {lines_text}{', ...' * (len(lines) > MOST_LINES)}."
                " This copy was damaged by version control; take the publisher's file."
            )
        return super().parse(data, schema)

    def check_frame(self, frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
        """Return the numbers, indexed by RowNumber."""
        table = super().check_frame(frame, schema)
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
        return table.set_axis(rows, axis="index")


TABLE = _Churn()
files, size, width = TABLE.files, TABLE.size, TABLE.width
facts, clients, check = TABLE.facts, TABLE.clients, TABLE.check
