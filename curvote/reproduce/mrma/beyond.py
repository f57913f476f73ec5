"""The figure of a contest: error against epsilon, a panel a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.measure import Look
from curvote.reporting import methods, style
from curvote.reproduce.drawing import (
    Line,
    distinct,
    error_axis,
    fitting_legend,
    head,
    joined,
    label_left,
    log_axis,
    panels,
)
from curvote.reproduce.gather import Evidence
from curvote.reproduce.mrma.contest import (
    AUTO,
    MAJORITY,
    Cell,
    best,
    by_setting,
    cells,
    lines,
    published,
)
from curvote.reproduce.rows import Row, having

_CLEAN = "clean"
_PUBLISHED = "best published method"
_LOOKS = {
    AUTO: methods.look("mrma"),
    _PUBLISHED: Look(style.INK, "D", size=4),
    "mrma sampled": methods.look("best_single"),
    "votes": replace(methods.look("votes"), width=1.3),
    MAJORITY: methods.look("majority"),
    "joined": replace(methods.look("joined"), colour="#56357f", width=1.3),
    "volunteers": replace(methods.look("volunteers"), marker="", above=1),
    _CLEAN: replace(methods.look("clean"), marker="", above=1),
}
_RED = "#c1121f"
_RING: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "none", "ms": 12, "mec": _RED}
# The error bars of neighbours stand so far apart, as a factor of epsilon.
_STEP = 1.03


def figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw `auto` and its rivals; a ring stands where it has lost."""
    settings, judged = by_setting(rows), cells(rows)
    drawn, axes = panels(len(settings), height=2.9)
    for ax, (setting, own) in zip(axes, settings.items(), strict=True):
        _panel(ax, own, [cell for cell in judged if cell.auto["setting"] == setting])
        head(ax, setting)
    label_left(axes)
    fitting_legend(drawn, _handles(rows, judged))
    return drawn


def _panel(ax: Axes, rows: Sequence[Row], judged: Sequence[Cell]) -> None:
    shown = _lines(rows)
    for line in shown:
        if line.rows[0]["epsilon"] is None:
            at = line.rows[0]["curvote"]
            ax.axhline(at, zorder=line.look.above, **style.inks(line.look))
        else:
            levels = distinct(line.rows, "epsilon")
            joined(ax, line, {level: _place(level, line.label) for level in levels})
    for lost in (cell.auto for cell in judged if cell.better):
        ax.plot(_place(lost["epsilon"], AUTO), lost["curvote"], zorder=7, **_RING)
    drawn = [row for line in shown for row in line.rows] or rows
    log_axis(ax, sorted(distinct(drawn, "epsilon")))
    error_axis(ax, drawn)


def _lines(rows: Sequence[Row]) -> list[Line]:
    """Return the lines of one setting that have rows; of several learners the best."""
    ends = [row for line in lines(rows).values() for row in line]
    found = {name: best(having(ends, protocol=name)) for name in _LOOKS}
    found[_PUBLISHED] = published(rows)
    return [Line(name, _LOOKS[name], own) for name, own in found.items() if own]


def _place(epsilon: float, name: str) -> float:
    step = list(_LOOKS).index(name) - 2 if _LOOKS[name].marker else 0
    return float(epsilon * _STEP**step)


def _handles(rows: Sequence[Row], judged: Sequence[Cell]) -> list[Line2D]:
    shown = [line for own in by_setting(rows).values() for line in _lines(own)]
    named = {line.label: line.handle() for line in shown}
    if any(cell.better for cell in judged):
        named["lost"] = Line2D([], [], label="auto has lost", **_RING)
    return list(named.values())
