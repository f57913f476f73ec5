"""The report's figures, as deterministic SVG and PNG files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from curvote.reporting import data as tables
from curvote.reporting import style
from curvote.reporting.curves_figure import curves
from curvote.reporting.data import FloatArray, PageData
from curvote.reporting.methods import method_of

UTILITY_RANGE = (-0.5, 1.5)
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def misclassification(data: PageData, narrow: bool) -> Figure:
    """Draw error against epsilon: one panel for each learner, one line per method."""
    scores = tables.with_series(data.scores)
    names = tables.learners(scores) or ["all"]
    figure, axes = style.panels(len(names), narrow=narrow, height=3.6)
    for ax, name in zip(axes, names, strict=True):
        mine = scores[scores["learner"].isna() | (scores["learner"] == name)]
        _error_panel(ax, mine, tables.epsilons(scores), data.bayes_error)
        ax.set_title(style.title(name))
    axes[0].set_ylim(_limits(scores, data.bayes_error))
    _left_label(axes, narrow, f"error on new {data.record}s (%)")
    handles = [_legend_line(series) for series in tables.series_names(scores)]
    if data.bayes_error is not None:
        handles.append(Line2D([], [], color=style.INK, lw=1, ls=":", label="Bayes"))
    legend(figure, handles, 3 if narrow else (5, 7, 10)[min(len(names), 3) - 1])
    return figure


def _error_panel(
    ax: Axes, scores: pd.DataFrame, levels: list[float], bayes: float | None
) -> None:
    names = tables.series_names(scores)
    if bayes is not None:
        ax.axhline(100 * bayes, color=style.INK, lw=1, ls=":", zorder=2)
    for rank, series in enumerate(names):
        rows = scores[scores["series"] == series].sort_values("epsilon")
        # A small sideways step keeps the error bars of neighbours apart.
        dodge = 0 if not style.look(series).marker else 0.022 * (rank - len(names) / 2)
        at = np.array([levels.index(float(e)) for e in rows["epsilon"]]) + dodge
        _series(ax, series, at, rows)
    epsilon_axis(ax, levels)
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.grid(axis="y")


def _series(ax: Axes, series: str, at: FloatArray, rows: pd.DataFrame) -> None:
    look = style.look(series)
    ax.errorbar(
        at,
        100 * rows["misclassification"].astype(float),
        yerr=200 * rows["se"].astype(float).fillna(0),
        color=look.colour,
        lw=look.width,
        ls=look.line,
        marker=look.marker,
        ms=look.size,
        mec=style.PAPER,
        mew=0.6,
        elinewidth=0.9,
        zorder=look.above,
    )


def _legend_line(series: str) -> Line2D:
    look = style.look(series)
    return Line2D(
        [],
        [],
        color=look.colour,
        lw=look.width,
        ls=look.line,
        marker=look.marker,
        ms=look.size,
        mec=style.PAPER,
        mew=0.6,
        label=method_of(series).label,
    )


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


def epsilon_axis(ax: Axes, levels: list[float]) -> None:
    """Label the privacy levels, which stand at equal distances."""
    ax.set_xticks(range(len(levels)), [tables.level(level) for level in levels])
    ax.set_xlim(-0.4, len(levels) - 0.6)
    ax.set_xlabel("epsilon (smaller: more private)")


def _left_label(axes: list[Axes], narrow: bool, text: str) -> None:
    for ax in axes if narrow else axes[::3]:
        ax.set_ylabel(text)


def _limits(scores: pd.DataFrame, bayes: float | None) -> tuple[float, float]:
    """Return limits in percent: round fives around every bar and reference line."""
    value = 100 * scores["misclassification"].astype(float)
    bar = 200 * scores["se"].astype(float).fillna(0)
    low = np.nanmin([*(value - bar), 100 * bayes if bayes is not None else np.nan])
    high = np.nanmax(value + bar)
    return max(0.0, 5 * np.floor((low - 1) / 5)), 5 * np.ceil((high + 1) / 5)


def utilities(data: PageData, narrow: bool) -> Figure:
    """Draw the spread of estimated utilities: a ridge per epsilon, a panel per learner.

    Right of the cutoff a classifier is used, left of its mirror 1 - cutoff it is used
    reversed. Values outside ``UTILITY_RANGE`` count in the printed shares.
    """
    names = tables.learners(data.utilities)
    levels = tables.epsilons(data.utilities)
    height = 0.75 + 0.56 * len(levels)
    figure, axes = style.panels(len(names), narrow=narrow, height=height)
    for ax, name in zip(axes, names, strict=True):
        mine = data.utilities[data.utilities["learner"] == name]
        for row, level in enumerate(levels):
            values = mine.loc[mine["epsilon"] == level, "utility"].to_numpy(float)
            _ridge(ax, values, len(levels) - 1 - row, used_from(data.cutoff))
        _ridge_axes(ax, levels, used_from(data.cutoff))
        ax.set_title(style.title(name))
    _left_label(axes, narrow, "epsilon")
    patches = [
        Patch(color=style.REVERSED, label="used reversed"),
        Patch(color=style.UNUSED, label="not used"),
        Patch(color=style.USED, label="used as it is"),
    ]
    legend(figure, patches, 3)
    return figure


def used_from(cutoff: float) -> float:
    """Return the utility from which a classifier is used as it is, never below 1/2."""
    return max(cutoff, 0.5)


def _ridge(ax: Axes, values: FloatArray, base: int, cut: float) -> None:
    values = values[np.isfinite(values)]
    if not len(values):
        return
    grid, density = smooth(values)
    x = np.sort(np.append(grid, (1 - cut, cut)))
    top = base + 0.66 * np.interp(x, grid, density) / density.max()
    parts = [
        (x <= 1 - cut, style.REVERSED),
        ((x >= 1 - cut) & (x <= cut), style.UNUSED),
        (x >= cut, style.USED),
    ]
    for where, colour in parts:
        ax.fill_between(x, base, top, where=list(where), color=colour, lw=0, alpha=0.75)
    ax.plot(x, top, color=style.INK, lw=0.7)
    shares = ((values < 1 - cut).mean(), (values > cut).mean())
    for share, at, side in zip(shares, (-0.48, 1.48), ("left", "right"), strict=True):
        ax.text(at, base + 0.7, _share(float(share)), ha=side, size=7.5)


def _share(share: float) -> str:
    if 0 < share < 0.01:
        return "< 1 %"
    return f"{100 * share:.0f} %"


def smooth(values: FloatArray, points: int = 201) -> tuple[FloatArray, FloatArray]:
    """Return grid and density of ``values`` over ``UTILITY_RANGE``, smoothed.

    Estimated utilities lie on a lattice of step 1/(n (2q - 1)); the Gaussian kernel
    is at least 0.8 of its step wide, or the ridge would show the lattice.
    """
    low, high = UTILITY_RANGE
    step = (high - low) / (points - 1)
    distinct = np.unique(values.round(9))
    lattice = np.median(np.diff(distinct)) if 1 < len(distinct) < 400 else 0.0
    width = max(0.6 * values.std() * len(values) ** -0.2, 0.8 * lattice, 2 * step)
    reach = int(np.ceil(4 * width / step))
    edges = low + step * (np.arange(-reach, points + reach + 1) - 0.5)
    counts, _ = np.histogram(values, edges)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    x: FloatArray = low + step * np.arange(points, dtype=np.float64)
    return x, np.convolve(counts, kernel, "valid").astype(np.float64)


def _ridge_axes(ax: Axes, levels: list[float], cut: float) -> None:
    ax.set_yticks(range(len(levels)), [f"{level:g}" for level in reversed(levels)])
    ax.set_ylim(-0.08, len(levels))
    ax.set_xlim(*UTILITY_RANGE)
    ax.set_xticks([0, 0.5, 1])
    ax.set_xlabel("estimated utility, before reversal")
    for at in (cut, 1 - cut):
        ax.axvline(at, color=style.INK, lw=0.8, ls=(0, (2, 2)))
    ax.spines["left"].set_visible(False)
    ax.grid(axis="y")


FIGURES: dict[str, Callable[[PageData, bool], Figure]] = {
    "misclassification": misclassification,
    "utilities": utilities,
    "curves": curves,
}


def available(data: PageData) -> list[str]:
    """Return the names of the figures for which there is something to draw."""
    there = (
        data.scores["misclassification"].notna().any(),
        data.utilities["utility"].notna().any(),
        data.curves is not None,
    )
    return [name for name, has in zip(FIGURES, there, strict=True) if has]


def draw(
    data: PageData, name: str, *kinds: str, narrow: bool = False
) -> dict[str, bytes]:
    """Return a figure as ``svg``, ``png`` (150 dpi) or both: same data, same bytes."""
    with mpl.rc_context({**style.RC, "svg.hashsalt": f"{name}-{narrow}"}):
        figure = FIGURES[name](data, narrow)
        return {kind: saved(figure, kind) for kind in kinds}


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
    for name in FIGURES.keys() - set(available(data)):
        for kind in ("png", "svg"):
            (folder / f"{name}.{kind}").unlink(missing_ok=True)
    return {
        f"{name}.{kind}": write(folder / f"{name}.{kind}", content)
        for name in available(data)
        for kind, content in draw(data, name, "png", "svg").items()
    }


def write(path: Path, content: bytes) -> Path:
    """Write a file under a temporary name and rename it, so that none is half done."""
    temporary = path.with_name(f".tmp-{path.name}")
    temporary.write_bytes(content)
    return temporary.replace(path)
