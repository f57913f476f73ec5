"""How mechanisms look, and agreement against epsilon beside what is printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reporting import style
from curvote.reproduce.drawing import (
    Line,
    against,
    fitting_legend,
    head,
    label_left,
    panels,
)
from curvote.reproduce.rows import Row, having

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


def curves_by_records(given: Sequence[Row]) -> Figure:
    """Draw a panel for each model and records: curvote, printed, claimed.

    A mechanism is a hue: a line what curvote finds, marks the printed draws, dots the
    printed lower bound.
    """
    names = dict.fromkeys((one["learner"], one["setting"]) for one in given)
    drawn = against(
        {
            f"{model}, {setting}": _lines(having(given, learner=model, setting=setting))
            for model, setting in names
        }
    )
    label_left(drawn.axes, "agreement (%)")
    return drawn


def _lines(given: Sequence[Row]) -> list[Line]:
    """Return three lines a mechanism; the legend names its marks, then the lines."""
    lines = []
    for name, look in LOOKS.items():
        mine = having(given, method=name)
        if mine:
            lines += [
                Line(name, _as(look, _CLAIMED), _column(mine, "claimed")),
                Line(name, _as(look, _FOUND), mine),
                Line(name, replace(look, line=""), _column(mine, "published")),
            ]
    return [
        *lines,
        Line("curvote", _FOUND, ()),
        Line("printed draws", Look(style.INK, "o", ""), ()),
        Line("printed lower bound", _CLAIMED, ()),
    ]


def _as(look: Look, line: Look) -> Look:
    return replace(line, colour=look.colour)


def _column(given: Sequence[Row], name: str) -> list[Row]:
    return [one | {"curvote": one[name], "se": None} for one in given]


def along(
    panels_of: Mapping[str, Sequence[Row]],
    place: Callable[[Row], float],
    labels: tuple[str, str],
) -> Figure:
    """Draw a panel for each title, a line a mechanism, with rows at their ``place``.

    Dotted is ours, where it differs. ``labels`` name the axes, x and y.
    """
    figure, axes = panels(len(panels_of), 3.4)
    for ax, (title, given) in zip(axes, panels_of.items(), strict=True):
        for name, look in LOOKS.items():
            mine = sorted(having(given, method=name), key=place)
            for column, line in (("curvote", "-"), ("corrected", ":")):
                at, shown = map(place, mine), (one[column] for one in mine)
                ax.plot([*at], [*shown], color=look.colour, ls=line, lw=1.4)
        ax.set_xlabel(labels[0])
        ax.grid(axis="y")
        head(ax, title)
    label_left(axes, labels[1])
    names = {one["method"] for given in panels_of.values() for one in given}
    handles = [
        Line(name, replace(look, marker=""), ()).handle()
        for name, look in LOOKS.items()
        if name in names
    ]
    fitting_legend(figure, handles)
    return figure
