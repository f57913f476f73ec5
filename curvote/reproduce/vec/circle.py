"""Figures 2, 3, 4: K Gaussians on a circle, accuracy against K for every encoder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure

from curvote.chain.axis import Axis
from curvote.reproduce.drawing import against, label_left
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished, having
from curvote.reproduce.vec import bounds
from curvote.reproduce.vec.measured import accuracies, lines, ordered

across: Final = "n_classes"
CLASSES: Final = Axis(across, lambda _: (), label="number of classes K")
_SHOWN: Final = ("rr", "alibi", "vector", "subset")


def rows(_: str, found: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (sigma) and ``n_classes``, then the bounds.

    A bound and what it bounds are of quantity ``value``, as probabilities, for the
    encoder ``vector``; they have no protocol.
    """
    made = [
        row | {"setting": row["axes"]["sigma"], across: int(row["axes"][across])}
        for row in accuracies(found)
    ]
    return finished([*ordered(made), *bounds.rows(found)])


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting: accuracy against K, a line an encoder."""
    shown = having(given, quantity="accuracy")
    names = dict.fromkeys(row["setting"] for row in shown)
    drawn = against(
        {f"sigma = {name}": lines(having(shown, setting=name)) for name in names},
        CLASSES,
    )
    label_left(drawn.axes, "accuracy (%)")
    return drawn


def brief(given: Sequence[Row]) -> list[Row]:
    """Return the accuracies."""
    return having(given, quantity="accuracy")


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield what the text says beside what is seen, and whether the bounds hold."""
    yield "the paper: with sigma = 2/K the accuracy of vectors remains stable"
    for name in _SHOWN:
        mine = having(given, setting="2/K", protocol=name)
        told = ", ".join(f"{row['curvote']:.1f} at {row[across]}" for row in mine)
        yield f"  {name}: {told}"
    yield f"subset less vector, the worst cell: {_worst(given)}"
    yield from bounds.said(given)


def _worst(given: Sequence[Row]) -> str:
    """Return by how much subset selection is below vectors where it is worst."""
    told = []
    for row in having(given, protocol="vector"):
        place = {name: row[name] for name in ("setting", across)}
        for other in having(given, protocol="subset", **place):
            apart = math.hypot(row["se"] or 0, other["se"] or 0)
            told.append((other["curvote"] - row["curvote"], apart, place))
    if not told:
        return "none"
    gap, error, place = min(told, key=lambda one: one[0])
    where = f"sigma {place['setting']}, K = {place[across]}"
    return f"{gap:+.2f} ± {error:.2f} points ({where})"
