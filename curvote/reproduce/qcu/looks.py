"""Panels of QCU's figures: agreement against epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reporting import style
from curvote.reproduce.drawing import (
    PlotLine,
    fitting_legend,
    label_y_axes,
    line_panels,
    panel_title,
    panels,
)
from curvote.reproduce.rows import Row, select

LOOKS: Final = {
    "pm_01": Look("#0072b2", "o"),
    "sw_01": Look("#009e73", "^"),
    "k_rr": Look("#d98c00", "s"),
    "exponential": Look("#b3346c", "D"),
    "laplace": Look("#6460c8", "v"),
    "gaussian": Look("#5c4a32", "h"),
}
_FOUND: Final = Look(style.INK, "", "-", 1.5)
_CLAIMED: Final = Look(style.INK, "", ":", 0.9, above=2)


def curves_by_records(results: Sequence[Row]) -> Figure:
    """Draw a panel for each model and records.

    A mechanism is a hue: a line what curvote finds, marks the printed draws, dots the
    printed lower bound.
    """
    names = dict.fromkeys((row["learner"], row["setting"]) for row in results)
    fig = line_panels(
        {
            f"{model}, {setting}": _mechanism_lines(
                select(results, learner=model, setting=setting)
            )
            for model, setting in names
        }
    )
    label_y_axes(fig.axes, "agreement (%)")
    return fig


def _mechanism_lines(results: Sequence[Row]) -> list[PlotLine]:
    """Return three lines a mechanism; the legend names its marks, then the lines."""
    lines = []
    for name, look in LOOKS.items():
        selected = select(results, method=name)
        if selected:
            lines += [
                PlotLine(
                    name, _recolour(look, _CLAIMED), _column_rows(selected, "claimed")
                ),
                PlotLine(name, _recolour(look, _FOUND), selected),
                PlotLine(
                    name, replace(look, line=""), _column_rows(selected, "published")
                ),
            ]
    return [
        *lines,
        PlotLine("curvote", _FOUND, ()),
        PlotLine("printed draws", Look(style.INK, "o", ""), ()),
        PlotLine("printed lower bound", _CLAIMED, ()),
    ]


def _recolour(look: Look, line: Look) -> Look:
    return replace(line, colour=look.colour)


def _column_rows(results: Sequence[Row], name: str) -> list[Row]:
    return [row | {"curvote": row[name], "se": None} for row in results]


def mechanism_curves(
    panels_of: Mapping[str, Sequence[Row]],
    place: Callable[[Row], float],
    labels: tuple[str, str],
) -> Figure:
    """Draw a panel for each title, a line for each mechanism.

    Dotted is ours, where it differs. ``labels`` name the axes, x and y.
    """
    figure, axes = panels(len(panels_of), 3.4)
    for ax, (title, results) in zip(axes, panels_of.items(), strict=True):
        for name, look in LOOKS.items():
            selected = sorted(select(results, method=name), key=place)
            for column, line in (("curvote", "-"), ("corrected", ":")):
                at, values = map(place, selected), (row[column] for row in selected)
                ax.plot([*at], [*values], color=look.colour, ls=line, lw=1.4)
        ax.set_xlabel(labels[0])
        ax.grid(axis="y")
        panel_title(ax, title)
    label_y_axes(axes, labels[1])
    names = {row["method"] for results in panels_of.values() for row in results}
    handles = [
        PlotLine(name, replace(look, marker=""), ()).handle()
        for name, look in LOOKS.items()
        if name in names
    ]
    fitting_legend(figure, handles)
    return figure
