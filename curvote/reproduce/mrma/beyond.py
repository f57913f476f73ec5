"""Figure of a contest: error against epsilon, a panel a setting."""

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
    PlotLine,
    distinct_values,
    draw_line,
    error_axis,
    fitting_legend,
    label_y_axes,
    log_axis,
    panel_title,
    panels,
)
from curvote.reproduce.gather import Evidence
from curvote.reproduce.mrma.contest import (
    AUTO,
    MAJORITY,
    ContestCell,
    best_published,
    best_rows,
    contest_cells,
    group_by_setting,
    table_lines,
)
from curvote.reproduce.rows import Row, select

_CLEAN = "clean"
_PUBLISHED = "best published method"
_LOOKS = {
    AUTO: methods.series_look("mrma"),
    _PUBLISHED: Look(style.INK, "D", size=4),
    "mrma sampled": methods.series_look("best_single"),
    "votes": replace(methods.series_look("votes"), width=1.3),
    MAJORITY: methods.series_look("majority"),
    "joined": replace(methods.series_look("joined"), colour="#56357f", width=1.3),
    "volunteers": replace(methods.series_look("volunteers"), marker="", above=1),
    _CLEAN: replace(methods.series_look("clean"), marker="", above=1),
}
_RED = "#c1121f"
_RING: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "none", "ms": 12, "mec": _RED}
# The error bars of neighbours stand so far apart, as a factor of epsilon.
_STEP = 1.03


def figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw `auto` and its rivals; a ring marks a lost cell."""
    settings, contest = group_by_setting(rows), contest_cells(rows)
    fig, axes = panels(len(settings), height=2.9)
    for ax, (setting, setting_rows) in zip(axes, settings.items(), strict=True):
        _draw_panel(
            ax,
            setting_rows,
            [cell for cell in contest if cell.auto["setting"] == setting],
        )
        panel_title(ax, setting)
    label_y_axes(axes)
    fitting_legend(fig, _legend_handles(rows, contest))
    return fig


def _draw_panel(ax: Axes, rows: Sequence[Row], contest: Sequence[ContestCell]) -> None:
    chart_lines = _chart_lines(rows)
    for line in chart_lines:
        if line.rows[0]["epsilon"] is None:
            at = line.rows[0]["curvote"]
            ax.axhline(at, zorder=line.look.above, **style.line_style(line.look))
        else:
            levels = distinct_values(line.rows, "epsilon")
            draw_line(
                ax, line, {level: _shifted_level(level, line.label) for level in levels}
            )
    for lost in (cell.auto for cell in contest if cell.better):
        ax.plot(
            _shifted_level(lost["epsilon"], AUTO), lost["curvote"], zorder=7, **_RING
        )
    chart_rows = [row for line in chart_lines for row in line.rows] or rows
    log_axis(ax, sorted(distinct_values(chart_rows, "epsilon")))
    error_axis(ax, chart_rows)


def _chart_lines(rows: Sequence[Row]) -> list[PlotLine]:
    """Return the chart lines of a setting; of several learners the best."""
    ends = [row for line in table_lines(rows).values() for row in line]
    best_of = {name: best_rows(select(ends, protocol=name)) for name in _LOOKS}
    best_of[_PUBLISHED] = best_published(rows)
    return [
        PlotLine(name, _LOOKS[name], line_rows)
        for name, line_rows in best_of.items()
        if line_rows
    ]


def _shifted_level(epsilon: float, name: str) -> float:
    step = list(_LOOKS).index(name) - 2 if _LOOKS[name].marker else 0
    return float(epsilon * _STEP**step)


def _legend_handles(
    rows: Sequence[Row], contest: Sequence[ContestCell]
) -> list[Line2D]:
    chart_lines = [
        line
        for setting_rows in group_by_setting(rows).values()
        for line in _chart_lines(setting_rows)
    ]
    named = {line.label: line.handle() for line in chart_lines}
    if any(cell.better for cell in contest):
        named["lost"] = Line2D([], [], label="auto has lost", **_RING)
    return list(named.values())
