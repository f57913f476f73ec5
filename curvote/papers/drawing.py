"""Drawing of figures: panels, lines against an axis, legends, SVG and PNG."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from curvote.chain.axis import EPSILON, Axis
from curvote.chain.measure import Look
from curvote.papers.rows import Row, distinct_values, select
from curvote.report import style
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


def panels(
    n: int, height: float, columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure of ``n`` panels, two or three abreast."""
    columns = columns or (2 if n in {2, 4} else min(n, 3))
    lines = math.ceil(n / columns)
    layout = ConstrainedLayoutEngine(wspace=0.05, hspace=0.05)
    size = ((6.4, 9.0, 10.4)[columns - 1], lines * height + 0.5)
    figure = Figure(figsize=size, layout=layout)
    axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    for spare in axes[n:]:
        spare.remove()
    return figure, axes[:n]


def panel_title(ax: Axes, text: str) -> None:
    """Put a title above a panel, wrapped where it is wider."""
    grid = ax.get_gridspec()
    columns = grid.ncols if grid else 1
    ax.set_title(textwrap.fill(text, {1: 60, 2: 46}.get(columns, 34)))


def protocol_lines(rows: Sequence[Row], looks: Mapping[str, Look]) -> list[PlotLine]:
    """Return a line for each protocol among the rows, in the order of ``looks``."""
    return [
        PlotLine(name, look, selected)
        for name, look in looks.items()
        if (selected := select(rows, protocol=name))
    ]


def label_y_axes(axes: Sequence[Axes], text: str = ERROR) -> None:
    """Label the y axes of the panels of the first column."""
    for ax in axes:
        place = ax.get_subplotspec()
        if place and place.is_first_col():
            ax.set_ylabel(text)


def line_panels(
    chart: Mapping[str, Sequence[PlotLine]],
    x: Axis = EPSILON,
    columns: int | None = None,
    y: str = ERROR,
) -> Figure:
    """Draw a panel for each title: lines with +-2 standard errors.

    ``x`` goes to the right: rows hold its values under its name; ``y`` is a label.
    """
    rows = [row for lines in chart.values() for line in lines for row in line.rows]
    levels = sorted(distinct_values(rows, x.name))
    figure, axes = panels(len(chart), 3.4, columns)
    for ax, (title, lines) in zip(axes, chart.items(), strict=True):
        for rank, line in enumerate(lines):
            # A small sideways step keeps the error bars of neighbours apart.
            step = 0.022 * (rank - len(lines) / 2) if line.look.marker else 0.0
            draw_line(ax, line, {v: at + step for at, v in enumerate(levels)}, x.name)
        draw_level_axis(ax, levels, x)
        error_axis(ax, rows)
        panel_title(ax, title)
    label_y_axes(axes, y)
    handles = {line.label: line.handle() for lines in chart.values() for line in lines}
    fitting_legend(figure, [*handles.values()])
    return figure


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


def log_axis(ax: Axes, levels: Sequence[float]) -> None:
    """Make the x axis logarithmic in epsilon, with a tick at each level."""
    ax.set_xscale("log")
    ax.set_xticks(levels, [f"{level:g}" for level in levels])
    ax.minorticks_off()
    ax.set_xlabel("epsilon (smaller: more private)")


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
