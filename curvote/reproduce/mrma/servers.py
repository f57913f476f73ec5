"""Figure 3: what sharing classifiers among servers brings, a panel a learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reporting import methods, style
from curvote.reproduce.drawing import Line, against_epsilon, distinct
from curvote.reproduce.mrma.gather import Evidence
from curvote.reproduce.mrma.rows import USEFUL
from curvote.reproduce.rows import Row

_LOOKS = {
    "clients": Look("#d55e00", "o", width=2.4, size=6, above=6),
    "budget": Look("#0072b2", "s", width=1.6),
    "single": Look("#009e73", "^", "--", width=1.6, size=5.5),
}
_LABELS = {
    "clients": "splitting clients",
    "budget": "splitting the budget",
    "single": "each server alone",
}
_DASHES = {"budget": "--", "single": ":"}
_RANDOM = "2"  # the group whose slopes point anywhere


def figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the useful groups' error by split, and group 2 in grey."""
    return against_epsilon({n: _lines(rows, n) for n in distinct(rows, "learner")})


def _lines(rows: Sequence[Row], learner: str) -> list[Line]:
    mine = [row for row in rows if row["learner"] == learner]
    return [
        Line(
            _label(group, split),
            _look(group, split),
            [row for row in mine if (row["group"], row["split"]) == (group, split)],
        )
        for group in (USEFUL, _RANDOM)
        for split in distinct(mine, "split")
    ]


def _label(group: str, split: str) -> str:
    words = _LABELS.get(split, split)
    return words if group == USEFUL else f"group 2, {split}"


def _look(group: str, split: str) -> Look:
    look = _LOOKS.get(split, methods.OTHER)
    if group == USEFUL:
        return look
    dash = _DASHES.get(split, "-")
    return replace(look, colour=style.UNUSED, marker="", line=dash, width=1.1, above=2)
