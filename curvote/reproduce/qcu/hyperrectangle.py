"""Figure 5: boxes around (.5, .5) in which the answer stays, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from curvote.reproduce.drawing import fitting_legend, head, panels
from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu import plane
from curvote.reproduce.qcu.channels import agreement, ours, printed_agreement
from curvote.reproduce.qcu.examples import CLASSIFIERS, POINT, PRINTED_BOXES, question
from curvote.reproduce.qcu.known import surface
from curvote.reproduce.qcu.laws import printed
from curvote.reproduce.rows import Row, finished, having, percent
from curvote.utility.engines.base import Surface
from curvote.utility.robustness.box import box

across: Final = "epsilon"
SIDES: Final = ("u from", "u to", "v from", "v to")
OURS: Final = "ours"
MECHANISM: Final = "pm_01"
EPSILONS: Final = (1.0, 2.0, 4.0, 8.0)


def rows(_: str, found: Evidence | None = None) -> list[Row]:
    """Return the sides of the boxes, then how much of the noise each of them holds.

    ``setting`` names the box: "a" and "b" are printed, "ours" is found. The agreement
    itself stands in every row of that quantity, the noise in the box as its bound.
    """
    return finished(row for name in CLASSIFIERS for row in _of(name))


def _of(name: str) -> Iterator[Row]:
    asked = question(CLASSIFIERS[name]())
    known = surface(asked)
    found = box(known, asked.values, bounds=asked.bounds)
    boxes = PRINTED_BOXES | {OURS: np.column_stack([found.low[0], found.high[0]])}
    for setting, ends in boxes.items():
        yield from _sides(name, setting, ends)
    for epsilon in EPSILONS:
        yield from _held(name, known, boxes, epsilon)


def _sides(name: str, setting: str, ends: Any) -> Iterator[Row]:
    by = "curvote" if setting == OURS else "published"
    for side, value in zip(SIDES, ends.ravel(), strict=True):
        yield {
            "setting": setting,
            "learner": name,
            "group": side,
            "quantity": "value",
            by: float(value),
        }


def _held(
    name: str, known: Surface, boxes: dict[str, Any], epsilon: float
) -> Iterator[Row]:
    law, channel = printed(MECHANISM, epsilon), ours(MECHANISM, epsilon)
    seen = channel.law(POINT)
    for setting, ends in boxes.items():
        low, high = ends.T[:, None]
        yield {
            "setting": setting,
            "learner": name,
            "method": MECHANISM,
            "epsilon": epsilon,
            "quantity": "agreement",
            "curvote": percent(float(printed_agreement(known, POINT, law)[0])),
            "corrected": percent(float(agreement(known, channel)[0])),
            "bound": percent(float(seen.box(low, high)[0])) if seen else None,
        }


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the answers of both classifiers with all boxes."""
    drawn, axes = panels(len(CLASSIFIERS), 3.6)
    lines = {"a": ":", "b": "--", OURS: "-"}
    for ax, (name, make) in zip(axes, CLASSIFIERS.items(), strict=True):
        plane.draw(ax, plane.same(question(make())), POINT[0], ("x_u", "x_v"))
        for setting, line in lines.items():
            low, high = _ends(having(given, learner=name, setting=setting)).T
            label = setting if setting == OURS else f"printed ({setting})"
            plane.outline(ax, low, high, label, ls=line)
        head(ax, name)
    fitting_legend(drawn, axes[0].get_legend_handles_labels()[0])
    return drawn


def _ends(given: Sequence[Row]) -> Any:
    sides = having(given, quantity="value")
    by = {row["group"]: row["curvote"] or row["published"] or 0.0 for row in sides}
    return np.reshape([by[side] for side in SIDES], (2, 2))


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield what one box leaves out."""
    for name in CLASSIFIERS:
        mine = having(given, learner=name, epsilon=2.0)
        told = ", ".join(f"{row['setting']} {row['bound']:.1f}" for row in mine)
        yield (
            f"{name}, {MECHANISM}, epsilon 2 a feature: agreement"
            f" {mine[0]['corrected']:.1f} %, of the noise in the boxes: {told}"
        )
