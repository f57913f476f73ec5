"""The numbers behind the paper's curves, from the authors' public files."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Curve(NamedTuple):
    """Where a printed value stands: model, records, mechanism, epsilon a feature."""

    model: str
    records: str
    mechanism: str
    epsilon: float


class Value(NamedTuple):
    """What stands there: shares; ``draws`` of each record behind the empirical one."""

    empirical: float
    theory: float
    draws: int


@cache
def printed(figure: str) -> Mapping[Curve, Value]:
    """Return the values of a figure of the file, in its order."""
    place = files("curvote.reproduce.qcu") / "published" / "qcu_figures.csv"
    found: dict[Curve, dict[str, str]] = {}
    for row in csv.DictReader(place.read_text(encoding="utf-8").splitlines()):
        if row["figure"] == figure:
            curve = (row["model"], row["records"], row["mechanism"])
            told = found.setdefault(Curve(*curve, float(row["epsilon"])), {})
            told |= {row["quantity"]: row["value"]}
            told |= {"draws": row["draws"]} if row["draws"] else {}
    return {curve: _value(told) for curve, told in found.items()}


def _value(told: Mapping[str, str]) -> Value:
    return Value(float(told["empirical"]), float(told["theory"]), int(told["draws"]))
