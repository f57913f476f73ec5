"""Which column of a table a score stands in: its learner, and what sets it apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from curvote.run.config.settings import named

Row = Mapping[str, Any]


def columns(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return score rows whose ``learner`` names the column: "cg, case=1, arrival 2".

    A score without a learner, such as the majority's, stands in every column of its
    setting; where nothing there has a learner, the column is named after the setting.
    Scores without privacy get an infinite epsilon.
    """
    known = list(rows)
    found = []
    for row in known:
        labels = [_column(row, row["learner"])]
        if row["learner"] is None and _apart(row):
            others = (r for r in known if r["learner"] and _apart(r) == _apart(row))
            labels = list(dict.fromkeys(_column(r, r["learner"]) for r in others))
            labels = labels or [", ".join(_apart(row))]
        epsilon = math.inf if row["epsilon"] is None else row["epsilon"]
        found += [{**row, "learner": label, "epsilon": epsilon} for label in labels]
    return found


def _apart(row: Row) -> list[str]:
    """Return what sets a score apart beside protocol, epsilon, learner and method."""
    words = [named(row.get("setting", {}))]
    words += [f"{name} {row[name]}" for name in ("arrival", "group") if name in row]
    return [word for word in words if word]


def _column(row: Row, learner: str | None) -> str | None:
    return ", ".join([learner, *_apart(row)]) if learner else None
