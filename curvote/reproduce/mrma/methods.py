"""Figures 2, 4 and 5: error against epsilon, a panel a learner, a line a method."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from curvote.reporting import methods
from curvote.reproduce.drawing import Line, against_epsilon, distinct
from curvote.reproduce.mrma.gather import Evidence
from curvote.reproduce.rows import Row


def figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw every method; what looks at no record stands in every panel."""
    names = distinct(rows, "learner")
    return against_epsilon({name: _lines(rows, name) for name in names})


def _lines(rows: Sequence[Row], learner: str) -> list[Line]:
    mine = [row for row in rows if row["learner"] in {learner, None}]
    return [
        Line(
            methods.method_of(method).label,
            methods.look(method),
            [row for row in mine if row["method"] == method],
        )
        for method in distinct(mine, "method")
    ]
