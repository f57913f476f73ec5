"""Printed numbers behind QCU's curves, from the authors' public files."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class PrintedCurve(NamedTuple):
    """The place of a printed value: model, records, mechanism, epsilon."""

    model: str
    records: str
    mechanism: str
    epsilon: float


class PrintedValue(NamedTuple):
    """A printed value: shares, and draws behind the empirical one."""

    empirical: float
    theory: float
    draws: int


@cache
def printed_values(figure: str) -> Mapping[PrintedCurve, PrintedValue]:
    """Return the values of a figure of the file, in its order."""
    place = files("curvote.reproduce.qcu") / "published" / "qcu_figures.csv"
    columns_of: dict[PrintedCurve, dict[str, str]] = {}
    for row in csv.DictReader(place.read_text(encoding="utf-8").splitlines()):
        if row["figure"] == figure:
            curve = (row["model"], row["records"], row["mechanism"])
            quantities = columns_of.setdefault(
                PrintedCurve(*curve, float(row["epsilon"])), {}
            )
            quantities |= {row["quantity"]: row["value"]}
            quantities |= {"draws": row["draws"]} if row["draws"] else {}
    return {curve: _parse_value(quantities) for curve, quantities in columns_of.items()}


def _parse_value(quantities: Mapping[str, str]) -> PrintedValue:
    return PrintedValue(
        float(quantities["empirical"]),
        float(quantities["theory"]),
        int(quantities["draws"]),
    )
