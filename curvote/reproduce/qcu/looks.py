"""How mechanisms look, and agreement against epsilon beside what is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from matplotlib.figure import Figure

from curvote.chain.measure import Look
from curvote.reproduce.drawing import Line, against, label_left
from curvote.reproduce.rows import Row, having

LOOKS: Final = {
    "pm_01": Look("#0072b2", "o"),
    "sw_01": Look("#009e73", "^"),
    "k_rr": Look("#d98c00", "s"),
    "exponential": Look("#b3346c", "D"),
    "laplace": Look("#6460c8", "v"),
    "gaussian": Look("#5c4a32", "h"),
}
AGREEMENT: Final = "agreement (%)"


def curves_of(panels: Mapping[str, Sequence[Row]]) -> Figure:
    """Draw a panel for each title: what curvote finds, what is printed, and claimed.

    A mechanism is a hue: solid with marks curvote, hollow marks the printed draws,
    dotted the printed lower bound.
    """
    drawn = against({title: _lines(given) for title, given in panels.items()})
    label_left(drawn.axes, AGREEMENT)
    return drawn


def _lines(given: Sequence[Row]) -> list[Line]:
    lines = []
    for name, look in LOOKS.items():
        mine = having(given, method=name)
        if mine:
            lines.append(Line(name, replace(look, marker="", width=1.5), mine))
            points = replace(look, line="")
            lines.append(Line(f"{name}, printed", points, _column(mine, "published")))
            dots = replace(look, line=":", marker="", width=0.9, above=2)
            lines.append(Line(f"{name}, claimed", dots, _column(mine, "claimed")))
    return lines


def _column(given: Sequence[Row], name: str) -> list[Row]:
    return [one | {"curvote": one[name], "se": None} for one in given]
