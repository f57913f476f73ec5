"""Figure 10: decision maps of two models on stroke, with box and noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvote.papers.drawing import fitting_legend, panel_title, panels
from curvote.papers.evidence import Evidence
from curvote.papers.qcu import panels as plane
from curvote.papers.qcu.laws import agreement, our_channel, piecewise_mechanism
from curvote.papers.qcu.studies import analyze_setting, evidence_project
from curvote.papers.rows import Row, completed, percent, select
from curvote.pipeline.config.project import Project
from curvote.report import style
from curvote.systems.utility.method.profile import certified_bound

RECORD: Final = "age 79"
MODELS: Final = ("stroke-logistic", "stroke-forest")
MECHANISM: Final = "pm_01"
EPSILONS: Final = tuple(map(float, range(1, 9)))
SIDES: Final = ("age from", "age to", "bmi from", "bmi to")
# Section 7.2.1.
PRINTED: Final = {
    "stroke-logistic": (0.63, 1.0, 0.0, 1.0),
    "stroke-forest": (0.50, 1.0, 0.0, 0.62),
}
AREA, NOISE = "area with the same answer", "agreement"
WRONG: Final = "other answers in the printed box"
_MAP_EPSILON: Final = 2.0  # the epsilon whose noise is drawn


@completed
def rows(name: str, evidence: Evidence) -> Iterator[Row]:
    """Yield the sides of the box around a record, and the share covered.

    ``group`` "agreement" is of the noised answers that survive; the others are areas,
    also that of other answers within the printed box. In percent.
    """
    project = evidence_project(name, evidence)
    for model in MODELS:
        yield from _model_rows(project, model)


def _model_rows(project: Project, model: str) -> Iterator[Row]:
    robust_model = analyze_setting(project, model, RECORD)
    low, high = robust_model.box.low[0], robust_model.box.high[0]
    ends = np.column_stack([low, high]).ravel()
    base = {"setting": RECORD, "learner": model}
    for side, value, printed_side in zip(SIDES, ends, PRINTED[model], strict=True):
        sides = {"group": side, "quantity": "value", "curvote": float(value)}
        yield base | sides | {"published": printed_side}
    map_ = plane.same_answer_map(robust_model.question)
    box = np.reshape(PRINTED[model], (2, 2))
    areas = {
        AREA: plane.covered_share(map_, low, high),
        WRONG: plane.other_share(map_, *box.T),
    }
    for group, area in areas.items():
        yield base | {"group": group, "quantity": "share", "curvote": percent(area)}
    for epsilon in EPSILONS:
        channel = our_channel(MECHANISM, epsilon)
        bounds = certified_bound(channel, robust_model.values, robust_model.box)
        inside = float(bounds[0])
        total = float(agreement(robust_model.surface, channel)[0])
        yield base | {
            "group": NOISE,
            "method": MECHANISM,
            "epsilon": epsilon,
            "quantity": "share",
            "curvote": percent(inside / total),
            "bound": percent(inside),
        }


def figure(results: Sequence[Row], evidence: Evidence | None = None) -> Figure:
    """Draw a map for each model: answers, boxes and noised records."""
    project = evidence_project("qcu-figure-10", evidence)
    fig, axes = panels(len(MODELS), 3.8)
    for ax, model in zip(axes, MODELS, strict=True):
        robust_model = analyze_setting(project, model, RECORD)
        sides = select(results, learner=model, quantity="value")
        plane.draw_map(ax, robust_model.question, ("age/100", "bmi/50"))
        for column, line, label in (
            ("curvote", "-", "box, curvote"),
            ("published", ":", "box, printed"),
        ):
            ends = np.reshape([row[column] for row in sides], (2, 2))
            plane.draw_box(ax, ends[:, 0], ends[:, 1], label, ls=line, color=style.INK)
        _draw_noise(ax, robust_model.values)
        panel_title(ax, model)
    fitting_legend(fig, axes[0].get_legend_handles_labels()[0])
    return fig


def _draw_noise(ax: Axes, values: Any) -> None:
    """Draw the window of the law, and records noised by it."""
    law, rng = piecewise_mechanism(_MAP_EPSILON), np.random.default_rng(1)
    many = np.repeat(values, 300, axis=0)
    noised = np.column_stack([law.draw(column, rng) for column in many.T])
    label = f"noised by {MECHANISM}, epsilon {_MAP_EPSILON:g} a feature"
    ax.plot(*noised.T, ls="", marker=".", ms=2.5, color=style.MUTED, label=label)
    middle = np.clip(values[0], law.half, 1 - law.half)
    window = middle - law.half, middle + law.half
    plane.draw_box(ax, window[0], window[1], "its window", ls="--", color=style.BLUE)


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the share that one box covers of each model."""
    for model in MODELS:
        selected = select(results, learner=model, quantity="share")
        (area,) = select(selected, group=AREA)
        low = select(selected, group=NOISE, epsilon=1.0)[0]["curvote"]
        high = select(selected, group=NOISE, epsilon=8.0)[0]["curvote"]
        yield (
            f"{model}: one box covers {area['curvote']:.1f} % of the area with the"
            f" record's answer, and {low:.1f} to {high:.1f} % of the agreement"
            " (epsilon 1 to 8)"
        )
        (wrong,) = select(selected, group=WRONG)
        yield f"  in the printed box {wrong['curvote']:.1f} % have another answer"
