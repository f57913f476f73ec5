"""Columns of score tables: one for each learner and setting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from curvote.chain.lookup import all_systems
from curvote.run.config.settings import PROTOCOL, setting_name

Row = Mapping[str, Any]


def assign_columns(rows: Iterable[Row], x: str = "epsilon") -> list[dict[str, Any]]:
    """Return score rows with ``learner`` as column and ``level`` on axis ``x``.

    ``learner`` names the column: "cg, case=1, arrival 2". A score without a learner,
    such as a constant classifier's, stands in every column of its setting; where
    nothing there has a learner, the column is named after the setting. What others are
    held against stands in every column where its protocol measures nothing else, by one
    learner at most; where the others measure all of it, it stands there already. A
    score without a level, such as one without privacy, gets an infinite one.
    """
    axes = (axis.name for member in all_systems() for axis in member.axes)
    names = tuple(name for name in dict.fromkeys(axes) if name not in (x, "learner"))
    all_rows = list(rows)
    beside, repeated = _reference_protocols(all_rows)
    labelled = [
        (row, list(_distinctions(row, (*names, "group"))))
        for row in all_rows
        if row.get("protocol") not in repeated
    ]
    return [
        {**row, "learner": label, "level": math.inf if row[x] is None else row[x]}
        for row, apart in labelled
        for label in (
            [None]
            if _is_in_all_columns(row, beside)
            else _column_labels(row, apart, labelled)
        )
    ]


def _is_in_all_columns(row: Row, beside: set[str | None]) -> bool:
    """Return whether a score holds for all columns, as it has no grid."""
    alone = set(row.get("setting", {})) <= {PROTOCOL}
    return alone and row.get("protocol") in beside


def _reference_protocols(
    rows: Sequence[Row],
) -> tuple[set[str | None], set[str | None]]:
    """Return protocols of references only: valid everywhere, and repeated.

    First those whose scores hold for all of them, then those that others repeat.
    """
    references = {
        m.name for member in all_systems() for m in member.methods if m.reference
    }
    methods_by_protocol: dict[str | None, set[str]] = {}
    for row in rows:
        methods_by_protocol.setdefault(row.get("protocol"), set()).add(row["method"])
    reference_only = {
        name for name, methods in methods_by_protocol.items() if methods <= references
    }
    other_methods = {
        m
        for name in methods_by_protocol.keys() - reference_only
        for m in methods_by_protocol[name]
    }
    repeated = {
        name for name in reference_only if methods_by_protocol[name] <= other_methods
    }
    learners_by_protocol: dict[str | None, set[str | None]] = {}
    for row in rows:
        learners_by_protocol.setdefault(row.get("protocol"), set()).add(row["learner"])
    everywhere = {
        name
        for name in reference_only - repeated
        if other_methods and len(learners_by_protocol[name]) < 2
    }
    return everywhere, repeated


def _column_labels(
    row: Row, apart: list[str], labelled: list[tuple[Row, list[str]]]
) -> list[str | None]:
    if row["learner"] or not apart:
        return [_column_label(row["learner"], apart)]
    learners = (
        r["learner"]
        for r, distinctions in labelled
        if r["learner"] and distinctions == apart
    )
    labels = [_column_label(learner, apart) for learner in dict.fromkeys(learners)]
    return labels or [", ".join(apart)]


def _distinctions(row: Row, names: Iterable[str]) -> Iterator[str]:
    """Yield what distinguishes a score beside protocol, level and learner."""
    setting = setting_name(row.get("setting", {}))
    if setting:
        yield setting
    for name in names:
        if row.get(name) is not None:
            value = row[name]
            yield f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _column_label(learner: str | None, apart: list[str]) -> str | None:
    return ", ".join([learner, *apart]) if learner else None
