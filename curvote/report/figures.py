"""Figures of the report as reproducible SVG and PNG files."""

from __future__ import annotations

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
    placed, references = _split_references(scores)
    # A panel without any line would only show what others are held against.
    names = tables.learners(placed) or tables.learners(data.scores) or ["all"]
    figure, axes = style.make_panels(len(names), narrow=narrow, height=3.6)
    for ax, name in zip(axes, names, strict=True):
        panel_scores = scores[scores["learner"].isna() | (scores["learner"] == name)]
        _draw_panel(
            ax,
            panel_scores.loc[panel_scores.index.isin(placed.index)],
            metric,
            data.x,
            placed,
        )
        for _, row in panel_scores.loc[
            panel_scores.index.isin(references.index)
        ].iterrows():
            draw_level_line(ax, row, tables.display_factor(metric))
        if bound is not None:
            at = tables.display_factor(metric) * bound
            ax.axhline(at, color=style.INK, lw=1, ls=":", zorder=2)
        ax.set_title(
            style.wrap_title(name) if len(data.scores["learner"].dropna()) else ""
        )
    if metric.display == "percent":
        axes[0].set_ylim(_percent_limits(scores, bound))
    draw_left_label(axes, narrow, _axis_label(data, metric))
    handles = [_legend_handle(series) for series in tables.series_names(scores)]
    if bound is not None:
        handles.append(Line2D([], [], color=style.INK, lw=1, ls=":", label="Bayes"))
    draw_legend(figure, handles, 3 if narrow else (5, 7, 10)[min(len(names), 3) - 1])
    return figure


def _axis_label(data: PageData, metric: Metric) -> str:
    return data.metric_label(metric) + " (%)" * (metric.display == "percent")


def _split_references(scores: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the scores with a place on x, and references without one."""
    reference = [find_method(series).reference for series in scores["series"]]
    beside = scores["level"].isin([math.inf]) & np.array(reference, dtype=bool)
    return (scores, scores[:0]) if beside.all() else (scores[~beside], scores[beside])


def draw_level_line(ax: Axes, row: pd.Series, scale: int) -> None:
    """Draw a score that holds at every level, with two standard errors."""
    value, se = (scale * float(row[name] or 0) for name in ("value", "se"))
    ink = style.line_style(series_look(str(row["series"]))) | {"marker": ""}
    ax.axhline(value, zorder=2, **ink)
    if np.isfinite(se):
        ends = value - 2 * se, value + 2 * se
        ax.axhspan(*ends, color=ink["color"], alpha=0.1, lw=0, zorder=1)


def _draw_panel(
    ax: Axes, scores: pd.DataFrame, metric: Metric, x: Axis, all_scores: pd.DataFrame
) -> None:
    names, levels = tables.series_names(scores), tables.sorted_levels(all_scores)
    for rank, series in enumerate(names):
        rows = scores[scores["series"] == series]
        rows = rows.assign(at=[levels.index(value) for value in rows["level"]])
        # A small sideways step keeps the error bars of neighbours apart.
        dodge = 0 if not series_look(series).marker else 0.022 * (rank - len(names) / 2)
        _draw_series(
            ax, series, rows.sort_values("at"), dodge, tables.display_factor(metric)
        )
    draw_level_axis(ax, levels, x)
    is_percent = metric.display == "percent"
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=is_percent))
    ax.grid(axis="y")


def _draw_series(
    ax: Axes, series: str, rows: pd.DataFrame, dodge: float, scale: int
) -> None:
    ax.errorbar(
        rows["at"] + dodge,
        scale * rows["value"].astype(float),
        yerr=2 * scale * rows["se"].astype(float).fillna(0),
        elinewidth=0.9,
        zorder=series_look(series).above,
        **style.line_style(series_look(series)),
    )


def _legend_handle(series: str) -> Line2D:
    label = find_method(series).label
    return Line2D([], [], label=label, **style.line_style(series_look(series)))


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


def _percent_limits(scores: pd.DataFrame, bound: float | None) -> tuple[float, float]:
    """Return axis limits in percent, multiples of five around all bars."""
    value = 100 * scores["value"].astype(float)
    bar = 200 * scores["se"].astype(float).fillna(0)
    low = np.nanmin([*(value - bar), 100 * bound if bound is not None else np.nan])
    high = np.nanmax(value + bar)
    return max(0.0, 5 * np.floor((low - 1) / 5)), 5 * np.ceil((high + 1) / 5)


def figure_drawers(data: PageData) -> dict[str, Callable[[bool], Figure]]:
    """Return a drawing function for each figure of the page, by name."""
    return {m.name: partial(draw_lines, data, m) for m in data.figure_metrics} | {
        section.name: section.draw for section in data.sections if section.alt
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
            _share_limits([ax for figure in rendered for ax in figure.axes])
        return [figure_bytes(figure, "svg") for figure in rendered]


def _share_limits(axes: Sequence[Axes]) -> None:
    lows, highs = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(lows), max(highs))


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """Return the bytes of a figure's file, without date or version."""
    clean = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150, metadata=clean[kind])
    return _tidy_svg(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


def _tidy_svg(svg: bytes) -> bytes:
    """Round coordinates to 1/100 point, and add fallback fonts."""
    text = _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.2f}", svg.decode())
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
