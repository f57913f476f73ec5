"""Boxes of figure A.1: errors of one classifier of noised reports."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from curvote.errors import InternalError
from curvote.reporting import style
from curvote.reproduce.drawing import (
    distinct_values,
    fitting_legend,
    label_y_axes,
    panel_title,
    panels,
)
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row

_WIDTH = 0.34


def figure(rows: Sequence[Row], evidence: Evidence | None = None) -> Figure:
    """Draw a panel a learner: boxes over replicates by epsilon and representation.

    They are drawn from the ``replicates`` that were found.
    """
    if evidence is None:
        raise InternalError("boxes are drawn from the values of each replicate")
    kinds = distinct_values(rows, "representation")
    colours = dict(zip(kinds, style.CLASS_COLOURS, strict=False))
    levels: list[float | None] = [*sorted(distinct_values(rows, "epsilon")), None]
    names = distinct_values(rows, "learner")
    replicates = evidence.replicates
    replicates = replicates[replicates["method"].isin(distinct_values(rows, "method"))]
    fig, axes = panels(len(names), height=3.2)
    for ax, name in zip(axes, names, strict=True):
        learner_rows = replicates[replicates["learner"] == name]
        for rank, (kind, colour) in enumerate(colours.items()):
            shift = _WIDTH * 1.1 * (rank - (len(kinds) - 1) / 2)
            kind_rows = learner_rows[learner_rows["representation"] == kind]
            _draw_boxes(
                ax,
                [_replicate_values(kind_rows, level) for level in levels],
                shift,
                colour,
            )
        _level_axis(ax, levels)
        panel_title(ax, name)
    label_y_axes(axes)
    fitting_legend(fig, [Patch(color=colours[kind], label=kind) for kind in colours])
    return fig


def _replicate_values(table: pd.DataFrame, level: float | None) -> list[float]:
    there = table["epsilon"].isna() if level is None else table["epsilon"] == level
    return [100 * float(value) for value in table.loc[there, "value"]]


def _draw_boxes(ax: Axes, values: list[list[float]], shift: float, colour: str) -> None:
    line = {"color": colour, "linewidth": 1.0}
    ax.boxplot(
        values,
        positions=[at + shift for at in range(len(values))],
        widths=_WIDTH,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": f"{colour}55", "edgecolor": colour, "linewidth": 1.0},
        medianprops={"color": style.INK, "linewidth": 1.2},
        whiskerprops=line,
        capprops=line,
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": colour},
    )


def _level_axis(ax: Axes, levels: list[float | None]) -> None:
    texts = ["none" if level is None else f"{level:g}" for level in levels]
    ax.set_xticks(range(len(levels)), texts)
    ax.set_xlim(-0.6, len(levels) - 0.4)
    ax.set_ylim(0, 100)
    ax.set_xlabel("epsilon (none: no privacy)")
    ax.grid(axis="y")
