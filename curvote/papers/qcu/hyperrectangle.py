"""Figure 5: boxes around (.5, .5) of one answer, and their noise mass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from curvote.papers.drawing import fitting_legend, panel_title, panels
from curvote.papers.evidence import Evidence
from curvote.papers.qcu import panels as plane
from curvote.papers.qcu import studies
from curvote.papers.qcu.laws import agreement, our_channel, paper_law, printed_agreement
from curvote.papers.rows import Row, completed, percent, select
from curvote.systems.utility.method.engines.base import Surface
from curvote.systems.utility.method.profile import certify_box

SIDES: Final = ("u from", "u to", "v from", "v to")
OURS: Final = "ours"
MECHANISM: Final = "pm_01"
EPSILONS: Final = (1.0, 2.0, 4.0, 8.0)


@completed
def rows(_: str, evidence: Evidence | None = None) -> Iterator[Row]:
    """Yield the sides of the boxes, and the noise's mass in each.

    ``setting`` names the box: "a" and "b" are printed, "ours" is found. The agreement
    itself stands in every row of that quantity, the noise in the box as its bound.
    """
    for name, make in studies.CLASSIFIERS.items():
        query = studies.example_question(make())
        answers = studies.answer_surface(query)
        ours = certify_box(answers, query.values, bounds=query.bounds)
        boxes = studies.PRINTED_BOXES | {
            OURS: np.column_stack([ours.low[0], ours.high[0]])
        }
        for setting, ends in boxes.items():
            by = "curvote" if setting == OURS else "published"
            for side, value in zip(SIDES, ends.ravel(), strict=True):
                base = {"setting": setting, "learner": name, "group": side}
                yield base | {"quantity": "value", by: float(value)}
        for epsilon in EPSILONS:
            yield from _mass_rows(name, answers, boxes, epsilon)


def _mass_rows(
    name: str, answers: Surface, boxes: dict[str, Any], epsilon: float
) -> Iterator[Row]:
    law, channel = paper_law(MECHANISM, epsilon), our_channel(MECHANISM, epsilon)
    noise_law = channel.law(studies.POINT)
    for setting, ends in boxes.items():
        low, high = ends.T[:, None]
        yield {
            "setting": setting,
            "learner": name,
            "method": MECHANISM,
            "epsilon": epsilon,
            "quantity": "agreement",
            "curvote": percent(
                float(printed_agreement(answers, studies.POINT, law)[0])
            ),
            "corrected": percent(float(agreement(answers, channel)[0])),
            "bound": percent(float(noise_law.box(low, high)[0])) if noise_law else None,
        }


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the answers of both classifiers with all boxes."""
    fig, axes = panels(len(studies.CLASSIFIERS), 3.6)
    lines = {"a": ":", "b": "--", OURS: "-"}
    for ax, (name, make) in zip(axes, studies.CLASSIFIERS.items(), strict=True):
        plane.draw_map(ax, studies.example_question(make()), ("x_u", "x_v"))
        for setting, line in lines.items():
            low, high = _box_ends(select(results, learner=name, setting=setting)).T
            label = setting if setting == OURS else f"printed ({setting})"
            plane.draw_box(ax, low, high, label, ls=line)
        panel_title(ax, name)
    fitting_legend(fig, axes[0].get_legend_handles_labels()[0])
    return fig


def _box_ends(results: Sequence[Row]) -> Any:
    sides = select(results, quantity="value")
    by = {row["group"]: row["curvote"] or row["published"] or 0.0 for row in sides}
    return np.reshape([by[side] for side in SIDES], (2, 2))


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the noise's mass outside each box."""
    for name in studies.CLASSIFIERS:
        selected = select(results, learner=name, epsilon=2.0)
        texts = ", ".join(f"{row['setting']} {row['bound']:.1f}" for row in selected)
        yield (
            f"{name}, {MECHANISM}, epsilon 2 a feature: agreement"
            f" {selected[0]['corrected']:.1f} %, of the noise in the boxes: {texts}"
        )
