"""Grammar of figures: rows make panels, panels make lines along an axis.

A `Chart` says which columns make panels, which make lines and what stands on the x
axis. What is no line against an axis is drawn panel by panel, by `draw_panels`.
"""

import math
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import chain, repeat
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.measure import Look
from curvote.papers.rows import Row, axis_value, column_as_ours, distinct_values, select
from curvote.report import style
from curvote.report.data import OTHER_LOOK, find_method, series_look
from curvote.report.figures import draw_legend, draw_level_axis

ERROR, ACCURACY = "error on new clients (%)", "accuracy (%)"


@dataclass(frozen=True)
class PlotLine:
    """A line of a chart: rows, each with a value at its place on an axis."""

    label: str
    look: Look
    rows: Sequence[Row]

    def handle(self) -> Line2D:
        """Return the line's entry in a legend."""
        return Line2D([], [], label=self.label, **style.line_style(self.look))


def looks(name: str) -> dict[str, Look]:
    """Return the looks of one table of looks.toml, in their order."""
    tables = tomllib.loads((files("curvote.papers") / "looks.toml").read_text("utf-8"))
    return {line: Look(**fields) for line, fields in tables[name].items()}


def assigned_looks(names: Sequence[Any], table: str) -> dict[Any, Look]:
    """Return a look of a table for each name, one after the other."""
    in_order = chain(looks(table).values(), repeat(OTHER_LOOK))
    return dict(zip(names, in_order, strict=False))


def method_label(name: str) -> str:
    """Return the label of a method."""
    return find_method(name).label


@dataclass(frozen=True)
class Series:
    """Lines of one kind: one for each value of the columns ``by``, which is its name.

    ``looks`` holds the looks of known names, which are drawn in this order; a function
    gives one to any name, drawn as it first appears. ``changes`` replace parts of a
    look. A line has the rows that also hold ``where``, with ``value`` as their value,
    and is called by ``label`` of its name.
    """

    by: Sequence[str]
    looks: Mapping[str, Look] | Callable[[str], Look] = series_look
    label: Callable[[str], str] = method_label
    where: Mapping[str, Any] = field(default_factory=dict)
    value: str = "curvote"
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, rows: Iterable[Row]) -> list[PlotLine]:
        """Return the lines of the rows of a panel."""
        rows_of: dict[str, list[Row]] = {}
        for row in select(rows, **self.where):
            if row[self.value] is not None:
                name = ", ".join(str(row[n]) for n in self.by if row[n] is not None)
                rows_of.setdefault(name, []).append(row)
        of = self.looks
        look_of = {n: of(n) for n in rows_of} if callable(of) else of
        return [
            PlotLine(
                self.label(name),
                replace(look, **self.changes),
                column_as_ours(rows_of[name], self.value),
            )
            for name, look in look_of.items()
            if name in rows_of
        ]


@dataclass(frozen=True)
class Chart:
    """Figure of lines: rows -> panels -> lines.

    Each combination of values of the columns ``panels`` is a panel, by the first of
    them and then as they first appear, called by ``title`` of these values; a row
    without such a value belongs to every panel. A column may be an axis that
    ``setting`` names. ``series`` make the lines of a panel, along ``x``: a row without
    its value stands at every level. A ``logarithmic`` axis has levels at their values,
    else they are equally far apart.
    """

    panels: Sequence[str]
    series: Sequence[Callable[[Sequence[Row]], list[PlotLine]]]
    title: Callable[..., str] = "{}".format
    x: Axis = EPSILON
    y: str = ERROR
    where: Mapping[str, Any] = field(default_factory=dict)
    columns: int | None = None
    height: float = 3.4
    logarithmic: bool = False

    def __call__(self, rows: Sequence[Row], _: object = None) -> Figure:
        """Return the figure of rows."""
        placed = [row | {self.x.name: axis_value(row, self.x.name)} for row in rows]
        placed = select(placed, **self.where)
        keys = dict.fromkeys(
            tuple(axis_value(r, n) for n in self.panels) for r in placed
        )
        firsts = list(dict.fromkeys(key[0] for key in keys))
        charts = {}
        for key in sorted(keys, key=lambda key: firsts.index(key[0])):
            if None not in key:
                inside = placed
                for name, value in zip(self.panels, key, strict=True):
                    inside = [r for r in inside if axis_value(r, name) in {None, value}]
                levelled = repeat_at_levels(inside, self.x.name)
                lines = [line for make in self.series for line in make(levelled)]
                charts[self.title(*key)] = lines
        return line_panels(charts, self)


def repeat_at_levels(rows: Sequence[Row], name: str) -> list[Row]:
    """Repeat rows without a value of ``name`` at each value of the others."""
    levels = sorted(distinct_values(rows, name))
    return [
        row | {name: level}
        for row in rows
        for level in (levels if row[name] is None else [row[name]])
    ]


def line_panels(charts: Mapping[str, Sequence[PlotLine]], chart: Chart) -> Figure:
    """Draw a panel for each title as ``chart`` says: lines with +-2 standard errors."""
    rows = [row for lines in charts.values() for line in lines for row in line.rows]
    levels = sorted(distinct_values(rows, chart.x.name))

    def draw(ax: Axes, title: str) -> None:
        lines = charts[title]
        for rank, line in enumerate(lines):
            # A small sideways step keeps the error bars of neighbours apart.
            step = 0.022 * (rank - len(lines) / 2) if line.look.marker else 0.0
            places = {level: at + step for at, level in enumerate(levels)}
            if chart.logarithmic:
                places = {level: level for level in levels}
            draw_line(ax, line, places, chart.x.name)
        if chart.logarithmic:
            log_axis(ax, levels, chart.x.label)
        else:
            draw_level_axis(ax, levels, chart.x)
        error_axis(ax, rows)

    handles = {line.label: line.handle() for lines in charts.values() for line in lines}
    return draw_panels(
        list(charts),
        draw,
        chart.height,
        columns=chart.columns,
        y=chart.y,
        handles=[*handles.values()],
    )


Key = TypeVar("Key")


def draw_panels(
    keys: Sequence[Key],
    draw: Callable[[Axes, Key], None],
    height: float,
    *,
    columns: int | None = None,
    y: str = "",
    handles: Sequence[Any] | None = None,
    title: Callable[[Key], str] = str,
) -> Figure:
    """Return a figure with a panel for each key, which ``draw`` fills.

    Panels stand two or three abreast; a title is wrapped where it is wider. ``y``
    labels those of the first column. The legend has ``handles``, if not given what is
    labelled in the first panel.
    """
    n = len(keys)
    abreast = columns or (2 if n in {2, 4} else min(n, 3))
    lines = math.ceil(n / abreast)
    width, characters = ((6.4, 60), (9.0, 46), (10.4, 34))[abreast - 1]
    layout = ConstrainedLayoutEngine(wspace=0.05, hspace=0.05)
    figure = Figure(figsize=(width, lines * height + 0.5), layout=layout)
    axes = list(figure.subplots(lines, abreast, squeeze=False).flat)
    for spare in axes[n:]:
        spare.remove()
    for ax, key in zip(axes, keys, strict=False):
        draw(ax, key)
        ax.set_title(textwrap.fill(title(key), characters))
    if y:
        label_y_axes(axes[:n], y)
    labelled = axes[0].get_legend_handles_labels()[0]
    if legend := labelled if handles is None else handles:
        fitting_legend(figure, legend)
    return figure


def label_y_axes(axes: Sequence[Axes], text: str = ERROR) -> None:
    """Label the y axes of the panels of the first column."""
    for ax in axes:
        place = ax.get_subplotspec()
        if place and place.is_first_col():
            ax.set_ylabel(text)


def fitting_legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Put a legend above the panels, in as many columns as there is room for."""
    texts = [str(handle.get_label()) for handle in handles]
    room = 13 * figure.get_figwidth()  # characters of its font
    counts = [math.ceil(len(texts) / lines) for lines in range(1, len(texts) + 1)]
    fitting = (n for n in counts if _legend_width(texts, n) <= room)
    draw_legend(figure, list(handles), next(fitting, 1))


def _legend_width(texts: list[str], columns: int) -> int:
    """Return the width of a legend in characters, 8 for each line and gap."""
    rows = math.ceil(len(texts) / columns)
    parts = [texts[at : at + rows] for at in range(0, len(texts), rows)]
    return sum(8 + max(map(len, part)) for part in parts)


def draw_line(
    ax: Axes, line: PlotLine, places: Mapping[float, float], name: str = "epsilon"
) -> None:
    """Draw a line through its rows, each at the place of its value of ``name``."""
    rows = sorted(line.rows, key=lambda row: float(row[name]))
    at = [places[row[name]] for row in rows]
    draw_points(ax, at, rows, zorder=line.look.above, **style.line_style(line.look))


def draw_points(ax: Axes, at: Sequence[float], rows: Sequence[Row], **ink: Any) -> None:
    """Draw curvote's values with +-2 standard errors at given places."""
    values = [row["curvote"] for row in rows]
    errors = [2 * (row["se"] or 0) for row in rows]
    ax.errorbar(at, values, yerr=errors, **{"elinewidth": 0.9} | ink)


def error_axis(ax: Axes, rows: Iterable[Row]) -> None:
    """Format the y axis as shares in whole percent."""
    ax.set_ylim(axis_limits(rows))
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
    ax.grid(axis="y")


def log_axis(ax: Axes, levels: Sequence[float], label: str = EPSILON.label) -> None:
    """Make the x axis logarithmic, with a tick at each level."""
    ax.set_xscale("log")
    ax.set_xticks(levels, [f"{level:g}" for level in levels])
    ax.minorticks_off()
    ax.set_xlabel(label)


def decade_axis(ax: Axes, low: float, high: float) -> None:
    """Make the x axis logarithmic, with a label at every other decade."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    log_axis(ax, [10.0**power for power in powers][::2])
    ax.set_xlim(low, high)


def axis_limits(rows: Iterable[Row]) -> tuple[float, float]:
    """Return the y limits in percent, rounded around values and error bars."""
    ends = [
        value + side * 2 * (row["se"] or 0)
        for row in rows
        for value in (row["published"], row["curvote"], row["corrected"])
        if value is not None
        for side in (-1, 1)
    ]
    low, high = 5 * np.floor((min(ends) - 1) / 5), 5 * np.ceil((max(ends) + 1) / 5)
    return max(0.0, float(low)), min(100.0, float(high))
