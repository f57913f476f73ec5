"""Figures of the report as reproducible SVG and PNG files."""

import io
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from curvote.chain.axis import EPSILON, Axis, Value
from curvote.chain.measure import Metric
from curvote.report import data as tables
from curvote.report import style
from curvote.report.data import PageData, find_method, series_look

KINDS = ("png", "svg")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def draw_lines(data: PageData, metric: Metric, narrow: bool) -> Figure:
    """Draw a metric against x: a panel for each learner, a line per method.

    What has no place on x and is there to compare is a level line.
    """
    scores, bound = data.metric_scores(metric), data.bounds.get(metric.name)
    percent, scale = metric.display == "percent", tables.display_factor(metric)
    reference = [find_method(series).reference for series in scores["series"]]
    beside = scores["level"].isin([math.inf]) & np.array(reference, dtype=bool)
    if beside.all():
        beside = ~beside
    placed = scores[~beside]
    levels = tables.sorted_levels(placed)
    # A panel without any line would only show what others are held against.
    names = tables.learners(placed) or tables.learners(data.scores) or ["all"]
    figure, axes = style.make_panels(len(names), narrow=narrow, height=3.6)
    for ax, name in zip(axes, names, strict=True):
        panel_mask = scores["learner"].isna() | (scores["learner"] == name)
        panel_scores = scores[panel_mask & ~beside]
        series = tables.series_names(panel_scores)
        for rank, one_series in enumerate(series):
            look, rows = (
                series_look(one_series),
                panel_scores[panel_scores["series"] == one_series],
            )
            rows = rows.assign(at=[levels.index(value) for value in rows["level"]])
            rows = rows.sort_values("at")
            # A small sideways step keeps the error bars of neighbours apart.
            dodge = 0.022 * (rank - len(series) / 2) if look.marker else 0
            ax.errorbar(
                rows["at"] + dodge,
                scale * rows["value"].astype(float),
                yerr=2 * scale * rows["se"].astype(float).fillna(0),
                elinewidth=0.9,
                zorder=look.above,
                **style.line_style(look),
            )
        draw_level_axis(ax, levels, data.x)
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=percent))
        ax.grid(axis="y")
        for _, row in scores[panel_mask & beside].iterrows():
            draw_level_line(ax, row, scale)
        if bound is not None:
            ax.axhline(scale * bound, color=style.INK, lw=1, ls=":", zorder=2)
        has_learners = len(data.scores["learner"].dropna())
        ax.set_title(style.wrap_title(name) if has_learners else "")
    if percent:
        value = 100 * scores["value"].astype(float)
        bar = 200 * scores["se"].astype(float).fillna(0)
        low = np.nanmin([*(value - bar), 100 * bound if bound is not None else np.nan])
        low, high = 5 * np.floor((low - 1) / 5), np.nanmax(value + bar)
        axes[0].set_ylim(max(0.0, low), 5 * np.ceil((high + 1) / 5))
    draw_left_label(axes, narrow, data.metric_label(metric) + " (%)" * percent)
    methods = map(find_method, tables.series_names(scores))
    handles = [
        Line2D([], [], label=m.label, **style.line_style(m.look)) for m in methods
    ]
    if bound is not None:
        handles.append(Line2D([], [], color=style.INK, lw=1, ls=":", label="Bayes"))
    draw_legend(figure, handles, 3 if narrow else (5, 7, 10)[min(len(names), 3) - 1])
    return figure


def draw_level_line(ax: Axes, row: pd.Series, scale: int) -> None:
    """Draw a score that holds at every level, with two standard errors."""
    value, se = (scale * float(row[name] or 0) for name in ("value", "se"))
    ink = style.line_style(series_look(str(row["series"]))) | {"marker": ""}
    ax.axhline(value, zorder=2, **ink)
    if np.isfinite(se):
        ends = value - 2 * se, value + 2 * se
        ax.axhspan(*ends, color=ink["color"], alpha=0.1, lw=0, zorder=1)


def draw_legend(
    figure: Figure, handles: list[Line2D] | list[Patch], columns: int
) -> None:
    """Put the legend above the panels."""
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=min(columns, len(handles)),
        columnspacing=1.3,
        handletextpad=0.5,
        borderaxespad=0.2,
    )


def draw_level_axis(ax: Axes, levels: Sequence[Value], x: Axis = EPSILON) -> None:
    """Label the levels of an axis at equal distances."""
    ax.set_xticks(range(len(levels)), [tables.format_level(level) for level in levels])
    ax.set_xlim(-0.4, len(levels) - 0.6)
    ax.set_xlabel(x.label or x.name)


def draw_left_label(axes: list[Axes], narrow: bool, text: str) -> None:
    """Write ``text`` beside the left panels."""
    for ax in axes if narrow else axes[::3]:
        ax.set_ylabel(text)


def figure_drawers(data: PageData) -> dict[str, Callable[[bool], Figure]]:
    """Return a drawing function for each figure of the page, by name."""
    return {m.name: partial(draw_lines, data, m) for m in data.figure_metrics} | {
        section.name: section.draw for section in data.sections if section.alt_text
    }


def draw_figure(
    data: PageData, name: str, *kinds: str, narrow: bool = False
) -> dict[str, bytes]:
    """Return a figure as ``svg``, ``png`` (150 dpi) or both, reproducibly."""
    with mpl.rc_context({**style.RC, "svg.hashsalt": f"{name}-{narrow}"}):
        figure = figure_drawers(data)[name](narrow)
        return {kind: figure_bytes(figure, kind) for kind in kinds}


def draw_with_shared_axis(pages: Sequence[PageData], name: str) -> list[bytes]:
    """Return a narrow figure of each run as ``svg``, metrics on one axis."""
    with mpl.rc_context({**style.RC, "svg.hashsalt": name}):
        rendered = [figure_drawers(data)[name](True) for data in pages]
        if any(name == metric.name for data in pages for metric in data.figure_metrics):
            axes = [ax for figure in rendered for ax in figure.axes]
            lows, highs = zip(*(ax.get_ylim() for ax in axes), strict=True)
            for ax in axes:
                ax.set_ylim(min(lows), max(highs))
        return [figure_bytes(figure, "svg") for figure in rendered]


def save_bytes(figure: Figure, kind: str) -> bytes:
    """Return the bytes of a figure as matplotlib writes it, without date or version."""
    clean = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150, metadata=clean[kind])
    return buffer.getvalue()


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """Return the bytes of a figure's file, without date or version."""
    content = save_bytes(figure, kind)
    if kind != "svg":
        return content
    # Coordinates to 1/100 point, and fallback fonts.
    text = _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.2f}", content.decode())
    return text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif").encode()


def save_figures(data: PageData, folder: Path) -> dict[str, Path]:
    """Write every figure as PNG and SVG into ``folder``; return file name -> path.

    A file of an earlier report that has nothing to show now is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {
        f"{name}.{kind}": write_atomically(folder / f"{name}.{kind}", content)
        for name in figure_drawers(data)
        for kind, content in draw_figure(data, name, *KINDS).items()
    }
    for path in folder.iterdir():
        if path.suffix.removeprefix(".") in KINDS and path.name not in paths:
            path.unlink()
    return paths


def write_atomically(path: Path, content: bytes) -> Path:
    """Write a file under a temporary name, then rename it."""
    temporary = path.with_name(f".tmp-{path.name}")
    temporary.write_bytes(content)
    return temporary.replace(path)
