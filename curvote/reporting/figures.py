"""The report's figures, as deterministic SVG and PNG files."""

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
from curvote.reporting import data as tables
from curvote.reporting import style
from curvote.reporting.data import PageData
from curvote.reporting.methods import look, method_of

KINDS = ("png", "svg")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def lines(data: PageData, metric: Metric, narrow: bool) -> Figure:
    """Draw a metric against x: one panel for each learner, one line per method.

    What has no place on x and is there to compare is a level line.
    """
    scores, bound = data.of(metric), data.bounds.get(metric.name)
    placed, held = _apart(scores)
    # A panel without any line would only show what others are held against.
    names = tables.learners(placed) or tables.learners(data.scores) or ["all"]
    figure, axes = style.panels(len(names), narrow=narrow, height=3.6)
    for ax, name in zip(axes, names, strict=True):
        mine = scores[scores["learner"].isna() | (scores["learner"] == name)]
        _panel(ax, mine.loc[mine.index.isin(placed.index)], metric, data.x, placed)
        for _, row in mine.loc[mine.index.isin(held.index)].iterrows():
            level_line(ax, row, tables.scale(metric))
        if bound is not None:
            at = tables.scale(metric) * bound
            ax.axhline(at, color=style.INK, lw=1, ls=":", zorder=2)
        ax.set_title(style.title(name) if len(data.scores["learner"].dropna()) else "")
    if metric.shown == "percent":
        axes[0].set_ylim(_limits(scores, bound))
    left_label(axes, narrow, _named(data, metric))
    handles = [_legend_line(series) for series in tables.series_names(scores)]
    if bound is not None:
        handles.append(Line2D([], [], color=style.INK, lw=1, ls=":", label="Bayes"))
    legend(figure, handles, 3 if narrow else (5, 7, 10)[min(len(names), 3) - 1])
    return figure


def _named(data: PageData, metric: Metric) -> str:
    return data.label(metric) + " (%)" * (metric.shown == "percent")


def _apart(scores: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what has a place on x, and what others that have one are held against."""
    reference = [method_of(series).reference for series in scores["series"]]
    beside = scores["level"].isin([math.inf]) & np.array(reference, dtype=bool)
    return (scores, scores[:0]) if beside.all() else (scores[~beside], scores[beside])


def level_line(ax: Axes, row: pd.Series, scale: int) -> None:
    """Draw what holds at every level, with two standard errors to both sides."""
    value, se = (scale * float(row[name] or 0) for name in ("value", "se"))
    own = style.inks(look(str(row["series"]))) | {"marker": ""}
    ax.axhline(value, zorder=2, **own)
    if np.isfinite(se):
        ends = value - 2 * se, value + 2 * se
        ax.axhspan(*ends, color=own["color"], alpha=0.1, lw=0, zorder=1)


def _panel(
    ax: Axes, scores: pd.DataFrame, metric: Metric, x: Axis, every: pd.DataFrame
) -> None:
    names, levels = tables.series_names(scores), tables.levels(every)
    for rank, series in enumerate(names):
        rows = scores[scores["series"] == series]
        rows = rows.assign(at=[levels.index(each) for each in rows["level"]])
        # A small sideways step keeps the error bars of neighbours apart.
        dodge = 0 if not look(series).marker else 0.022 * (rank - len(names) / 2)
        _series(ax, series, rows.sort_values("at"), dodge, tables.scale(metric))
    level_axis(ax, levels, x)
    whole = metric.shown == "percent"
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=whole))
    ax.grid(axis="y")


def _series(
    ax: Axes, series: str, rows: pd.DataFrame, dodge: float, scale: int
) -> None:
    ax.errorbar(
        rows["at"] + dodge,
        scale * rows["value"].astype(float),
        yerr=2 * scale * rows["se"].astype(float).fillna(0),
        elinewidth=0.9,
        zorder=look(series).above,
        **style.inks(look(series)),
    )


def _legend_line(series: str) -> Line2D:
    label = method_of(series).label
    return Line2D([], [], label=label, **style.inks(look(series)))


def legend(figure: Figure, handles: list[Line2D] | list[Patch], columns: int) -> None:
    """Put the legend above the panels."""
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=min(columns, len(handles)),
        columnspacing=1.3,
        handletextpad=0.5,
        borderaxespad=0.2,
    )


def level_axis(ax: Axes, levels: Sequence[Value], x: Axis = EPSILON) -> None:
    """Label the levels of an axis, which stand at equal distances."""
    ax.set_xticks(range(len(levels)), [tables.level(level) for level in levels])
    ax.set_xlim(-0.4, len(levels) - 0.6)
    ax.set_xlabel(x.label or x.name)


def left_label(axes: list[Axes], narrow: bool, text: str) -> None:
    """Write ``text`` beside the panels at the left."""
    for ax in axes if narrow else axes[::3]:
        ax.set_ylabel(text)


def _limits(scores: pd.DataFrame, bound: float | None) -> tuple[float, float]:
    """Return limits in percent: round fives around every bar and reference line."""
    value = 100 * scores["value"].astype(float)
    bar = 200 * scores["se"].astype(float).fillna(0)
    low = np.nanmin([*(value - bar), 100 * bound if bound is not None else np.nan])
    high = np.nanmax(value + bar)
    return max(0.0, 5 * np.floor((low - 1) / 5)), 5 * np.ceil((high + 1) / 5)


def available(data: PageData) -> dict[str, Callable[[bool], Figure]]:
    """Return what draws each figure for which there is something to draw, by name."""
    return {m.name: partial(lines, data, m) for m in data.drawn} | {
        section.name: section.draw for section in data.sections if section.alt
    }


def draw(
    data: PageData, name: str, *kinds: str, narrow: bool = False
) -> dict[str, bytes]:
    """Return a figure as ``svg``, ``png`` (150 dpi) or both: same data, same bytes."""
    with mpl.rc_context({**style.RC, "svg.hashsalt": f"{name}-{narrow}"}):
        figure = available(data)[name](narrow)
        return {kind: saved(figure, kind) for kind in kinds}


def draw_alike(every: Sequence[PageData], name: str) -> list[bytes]:
    """Return a narrow figure of each run as ``svg``: a metric has one axis in all."""
    with mpl.rc_context({**style.RC, "svg.hashsalt": name}):
        drawn = [available(data)[name](True) for data in every]
        if any(name == metric.name for data in every for metric in data.drawn):
            _on_one_axis([ax for figure in drawn for ax in figure.axes])
        return [saved(figure, "svg") for figure in drawn]


def _on_one_axis(axes: Sequence[Axes]) -> None:
    lows, highs = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(lows), max(highs))


def saved(figure: Figure, kind: str) -> bytes:
    """Return a figure as a file's bytes, without date or version."""
    clean = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150, metadata=clean[kind])
    return _tidy(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


def _tidy(svg: bytes) -> bytes:
    """Round coordinates to 1/100 point and add fonts for where DejaVu is missing."""
    text = _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.2f}", svg.decode())
    return text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif").encode()


def save_figures(data: PageData, folder: Path) -> dict[str, Path]:
    """Write every figure as PNG and SVG into ``folder``; return file name -> path.

    A file of an earlier report that has nothing to show now is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = {
        f"{name}.{kind}": write(folder / f"{name}.{kind}", content)
        for name in available(data)
        for kind, content in draw(data, name, *KINDS).items()
    }
    for path in folder.iterdir():
        if path.suffix.removeprefix(".") in KINDS and path.name not in made:
            path.unlink()
    return made


def write(path: Path, content: bytes) -> Path:
    """Write a file under a temporary name and rename it, so that none is half done."""
    temporary = path.with_name(f".tmp-{path.name}")
    temporary.write_bytes(content)
    return temporary.replace(path)
