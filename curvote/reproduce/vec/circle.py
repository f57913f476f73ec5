"""Figures 2, 3, 4: K Gaussians on a circle, accuracy against K for every encoder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.figure import Figure

from curvote.chain.axis import Axis
from curvote.reproduce.drawing import label_y_axes, line_panels
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, complete_rows, select
from curvote.reproduce.vec import bounds
from curvote.reproduce.vec.measured import accuracy_rows, protocol_lines, sort_rows

across: Final = "n_classes"
CLASSES: Final = Axis(across, lambda _: (), label="number of classes K")
_SHOWN: Final = ("rr", "alibi", "vector", "subset")


def rows(_: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy by ``setting`` (sigma) and ``n_classes``, then the bounds.

    A bound and what it bounds are of quantity ``value``, as probabilities, for the
    encoder ``vector``; they have no protocol.
    """
    accuracy = [
        row | {"setting": row["axes"]["sigma"], across: int(row["axes"][across])}
        for row in accuracy_rows(evidence)
    ]
    return complete_rows([*sort_rows(accuracy), *bounds.bound_rows(evidence)])


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting: accuracy against K, a line an encoder."""
    accuracies_shown = select(results, quantity="accuracy")
    names = dict.fromkeys(row["setting"] for row in accuracies_shown)
    fig = line_panels(
        {
            f"sigma = {name}": protocol_lines(select(accuracies_shown, setting=name))
            for name in names
        },
        CLASSES,
    )
    label_y_axes(fig.axes, "accuracy (%)")
    return fig


def terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows of accuracies."""
    return select(results, quantity="accuracy")


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the text's statements beside the results and the bounds."""
    yield "the paper: with sigma = 2/K the accuracy of vectors remains stable"
    for name in _SHOWN:
        selected = select(results, setting="2/K", protocol=name)
        texts = ", ".join(f"{row['curvote']:.1f} at {row[across]}" for row in selected)
        yield f"  {name}: {texts}"
    yield f"subset less vector, the worst cell: {_worst_gap(results)}"
    yield from bounds.bound_conclusions(results)


def _worst_gap(results: Sequence[Row]) -> str:
    """Return the largest gap of subset selection below vectors."""
    gaps = []
    for row in select(results, protocol="vector"):
        place = {name: row[name] for name in ("setting", across)}
        for other in select(results, protocol="subset", **place):
            apart = math.hypot(row["se"] or 0, other["se"] or 0)
            gaps.append((other["curvote"] - row["curvote"], apart, place))
    if not gaps:
        return "none"
    gap, error, place = min(gaps, key=lambda one: one[0])
    where = f"sigma {place['setting']}, K = {place[across]}"
    return f"{gap:+.2f} ± {error:.2f} points ({where})"
