"""Which column of a table a score stands in: its learner, and what sets it apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from curvote.chain.lookup import systems
from curvote.run.config.settings import named

Row = Mapping[str, Any]


def columns(rows: Iterable[Row], x: str = "epsilon") -> list[dict[str, Any]]:
    """Return score rows with their ``level`` on axis ``x``, by column.

    ``learner`` names the column: "cg, case=1, arrival 2". A score without a learner,
    such as a constant classifier's, stands in every column of its setting; where
    nothing there has a learner, the column is named after the setting. A score without
    a level, such as one without privacy, gets an infinite one.
    """
    axes = (axis.name for one in systems() for axis in one.axes)
    names = tuple(name for name in dict.fromkeys(axes) if name not in (x, "learner"))
    known = [(row, list(_apart(row, (*names, "group")))) for row in rows]
    return [
        {**row, "learner": label, "level": math.inf if row[x] is None else row[x]}
        for row, apart in known
        for label in _labels(row, apart, known)
    ]


def _labels(
    row: Row, apart: list[str], known: list[tuple[Row, list[str]]]
) -> list[str | None]:
    if row["learner"] or not apart:
        return [_column(row["learner"], apart)]
    others = (r["learner"] for r, own in known if r["learner"] and own == apart)
    labels = [_column(learner, apart) for learner in dict.fromkeys(others)]
    return labels or [", ".join(apart)]


def _apart(row: Row, names: Iterable[str]) -> Iterator[str]:
    """Yield what sets a score apart beside protocol, level, learner and method."""
    setting = named(row.get("setting", {}))
    if setting:
        yield setting
    for name in names:
        if row.get(name) is not None:
            value = row[name]
            yield f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _column(learner: str | None, apart: list[str]) -> str | None:
    return ", ".join([learner, *apart]) if learner else None
