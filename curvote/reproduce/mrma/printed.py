"""Printed numbers of MRMA, from the files of ``published/``."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

_VALUES = ("misclassification_pct", "sd")
_NUMBERS = {"epsilon": float, "d": int}
REPETITIONS = 500

Key = tuple[tuple[str, str | float | None], ...]


@dataclass(frozen=True)
class PrintedCell:
    """One printed cell: what names it, its value in percent and its variance.

    ``variance`` is that of the printed mean over 500 repetitions, in squared percent
    points; 0 where the table prints no standard deviation.
    """

    key: Key
    percent: float
    variance: float


def printed_cells(file: str) -> list[PrintedCell]:
    """Return the cells of one file of ``published/``, in its order."""
    return [_parse_cell(row) for row in _csv_rows(file)]


def printed_cases() -> dict[str, dict[str, str]]:
    """Return the sizes (N, N0, N1, n0, n1, B, r0) of Tables A.2 and A.3 by case."""
    return {row.pop("case"): row for row in _csv_rows("mrma_cases_A2_A3.csv")}


def _csv_rows(file: str) -> list[dict[str, str]]:
    place = files("curvote.reproduce.mrma") / "published" / file
    return list(csv.DictReader(place.read_text(encoding="utf-8").splitlines()))


def _parse_cell(row: dict[str, str]) -> PrintedCell:
    named = {name: text for name, text in row.items() if name not in _VALUES}
    key = tuple((n, _NUMBERS.get(n, str)(t) if t else None) for n, t in named.items())
    variance = (100 * float(row.get("sd") or 0)) ** 2 / REPETITIONS
    return PrintedCell(key, float(row["misclassification_pct"]), variance)
