"""Which column of a table a score stands in: its learner, and what sets it apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from curvote.chain.lookup import systems
from curvote.run.config.settings import PROTOCOL, named

Row = Mapping[str, Any]


def columns(rows: Iterable[Row], x: str = "epsilon") -> list[dict[str, Any]]:
    """Return score rows with their ``level`` on axis ``x``, by column.

    ``learner`` names the column: "cg, case=1, arrival 2". A score without a learner,
    such as a constant classifier's, stands in every column of its setting; where
    nothing there has a learner, the column is named after the setting. What others are
    held against stands in every column where its protocol measures nothing else, by one
    learner at most; where the others measure all of it, it stands there already. A
    score without a level, such as one without privacy, gets an infinite one.
    """
    axes = (axis.name for one in systems() for axis in one.axes)
    names = tuple(name for name in dict.fromkeys(axes) if name not in (x, "learner"))
    every = list(rows)
    beside, told = _beside(every)
    known = [
        (row, list(_apart(row, (*names, "group"))))
        for row in every
        if row.get("protocol") not in told
    ]
    return [
        {**row, "learner": label, "level": math.inf if row[x] is None else row[x]}
        for row, apart in known
        for label in (
            [None] if _held_against(row, beside) else _labels(row, apart, known)
        )
    ]


def _held_against(row: Row, beside: set[str | None]) -> bool:
    """Say whether a score holds for all columns: it has no grid."""
    alone = set(row.get("setting", {})) <= {PROTOCOL}
    return alone and row.get("protocol") in beside


def _beside(rows: Sequence[Row]) -> tuple[set[str | None], set[str | None]]:
    """Return the protocols that measure only what all others are held against.

    First those whose scores hold for all of them, then those that others repeat.
    """
    references = {m.name for one in systems() for m in one.methods if m.reference}
    found: dict[str | None, set[str]] = {}
    for row in rows:
        found.setdefault(row.get("protocol"), set()).add(row["method"])
    alone = {name for name, methods in found.items() if methods <= references}
    others = {m for name in found.keys() - alone for m in found[name]}
    repeated = {name for name in alone if found[name] <= others}
    by: dict[str | None, set[str | None]] = {}
    for row in rows:
        by.setdefault(row.get("protocol"), set()).add(row["learner"])
    kept = {name for name in alone - repeated if others and len(by[name]) < 2}
    return kept, repeated


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
