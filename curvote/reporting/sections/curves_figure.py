"""Figure of curves: as recorded, projected, and rescaled."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from curvote.reporting import style
from curvote.reporting.data import FloatArray
from curvote.reporting.sections.sample import CurveSample

MAX_CURVES = 60
MAX_POINTS = 80
MAX_COORDINATES = 12
_GOLDEN_RATIO = 0.6180339887498949
_STRIP_WIDTH = 0.76  # of a coordinate's strips, all classes together
_LINE_STYLES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))


def draw_curves(sample: CurveSample, narrow: bool) -> Figure:
    """Draw raw curves, projected curves and rescaled coefficients, by class.

    At most ``MAX_CURVES`` records are drawn; the means are of all that were given.
    """
    figure, axes = style.make_panels(3, narrow=narrow, height=3.1, share_y=False)
    _draw_curves_panel(axes[0], sample, sample.curves)
    axes[0].set_title("1 · as recorded")
    _draw_curves_panel(axes[1], sample, sample.fitted)
    axes[1].set_title("2 · projected")
    axes[1].set_ylim(axes[0].get_ylim())
    _draw_coefficients_panel(axes[2], sample)
    axes[2].set_title("3 · rescaled")
    figure.legend(
        handles=[_class_line(sample, k) for k in range(len(sample.classes))],
        loc="outside upper left",
        ncols=2,
        borderaxespad=0.2,
    )
    return figure


def _class_line(sample: CurveSample, k: int) -> Line2D:
    return Line2D(
        [],
        [],
        color=_class_colours(sample)[k],
        lw=2.4,
        ls=_LINE_STYLES[k % len(_LINE_STYLES)],
        label=f"{sample.classes[k]} (thick: mean)",
    )


def _class_colours(sample: CurveSample) -> list[str]:
    return style.class_colours(len(sample.classes))


def rows_to_draw(sample: CurveSample, k: int) -> NDArray[np.int64]:
    """Return the rows of class ``k`` that are drawn, evenly spread."""
    rows = np.flatnonzero(sample.labels == k)
    count = min(len(rows), MAX_CURVES // len(sample.classes))
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _draw_curves_panel(ax: Axes, sample: CurveSample, values: FloatArray) -> None:
    step = -(-len(sample.grid) // MAX_POINTS)
    for k, colour in enumerate(_class_colours(sample)):
        thin = values[rows_to_draw(sample, k)]
        ax.plot(sample.grid[::step], thin[:, ::step].T, color=colour, lw=0.6, alpha=0.3)
    for k in range(len(sample.classes)):
        class_values = values[sample.labels == k]
        if len(class_values):
            line = _class_line(sample, k)
            line.set_data(sample.grid, class_values.mean(axis=0))
            line.set_zorder(4)
            ax.add_line(line)
    ax.set_xlim(*sample.domain)
    ax.set_xlabel(sample.unit)
    ax.grid(axis="y")


def _draw_coefficients_panel(ax: Axes, sample: CurveSample) -> None:
    d = min(sample.z.shape[1], MAX_COORDINATES)
    width = _STRIP_WIDTH / len(sample.classes)
    for k, colour in enumerate(_class_colours(sample)):
        rows = rows_to_draw(sample, k)
        # A golden-ratio sequence spreads the points evenly, with no draw of chance.
        steps = np.arange(len(rows), dtype=np.float64) * _GOLDEN_RATIO
        jitter = np.asarray(0.58 * width * (steps % 1 - 0.5), dtype=np.float64)
        for j in range(d):
            at = j + 1 + width * (k - (len(sample.classes) - 1) / 2)
            _draw_strip(ax, at + jitter, sample.z[rows, j], colour)
            _draw_mean_bar(
                ax, at, 0.45 * width, sample.z[sample.labels == k, j], colour
            )
    if sample.bounded:
        for edge in (-1, 1):
            ax.axhline(edge, color=style.INK, lw=0.8, ls=(0, (2, 2)))
        ax.set_ylim(-1.08, 1.08)
        ax.set_yticks([-1, -0.5, 0, 0.5, 1])
    ax.set_xticks(range(1, d + 1))
    ax.set_xlim(0.4, d + 0.6)
    more = f" (first {d} of {sample.z.shape[1]})" if d < sample.z.shape[1] else ""
    ax.set_xlabel(f"coordinate{more}")
    ax.grid(axis="y")


def _draw_strip(ax: Axes, at: FloatArray, values: FloatArray, colour: str) -> None:
    ax.plot(at, values, "o", color=colour, ms=3, mew=0, alpha=0.45)


def _draw_mean_bar(
    ax: Axes, at: float, half: float, values: FloatArray, colour: str
) -> None:
    if len(values):
        mean, ends = float(values.mean()), [at - half, at + half]
        ax.plot(ends, [mean, mean], color=style.PAPER, lw=4.4)
        ax.plot(ends, [mean, mean], color=colour, lw=2.6, zorder=4)
