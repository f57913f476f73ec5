"""Figure 10: decision maps of two models on stroke, with box and law of the noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvote.reporting import style
from curvote.reproduce.drawing import fitting_legend, head, panels
from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu import plane
from curvote.reproduce.qcu.channels import agreement, ours
from curvote.reproduce.qcu.known import Known, known_of, project_of
from curvote.reproduce.qcu.laws import pm
from curvote.reproduce.rows import Row, finished, having, percent
from curvote.run.project import Project
from curvote.utility.robustness.bound import bound

across: Final = "epsilon"
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
_SHOWN: Final = 2.0  # the epsilon whose noise is drawn


def rows(name: str, found: Evidence) -> list[Row]:
    """Return the sides of the box around a record, and what share it covers.

    ``group`` "agreement" is of the noised answers that survive; the others are areas,
    also that of other answers within the printed box. In percent.
    """
    project = project_of(name, found)
    return finished(row for model in MODELS for row in _of(project, model))


def _of(project: Project, model: str) -> Iterator[Row]:
    known = known_of(project, model, RECORD)
    low, high = known.box.low[0], known.box.high[0]
    ends = np.column_stack([low, high]).ravel()
    base = {"setting": RECORD, "learner": model}
    for side, value, told in zip(SIDES, ends, PRINTED[model], strict=True):
        sides = {"group": side, "quantity": "value", "curvote": float(value)}
        yield base | sides | {"published": told}
    map_, box = plane.same(known.question), np.reshape(PRINTED[model], (2, 2))
    areas = {AREA: plane.covered(map_, low, high), WRONG: plane.other(map_, *box.T)}
    for group, area in areas.items():
        yield base | {"group": group, "quantity": "share", "curvote": percent(area)}
    for epsilon in EPSILONS:
        yield base | _covered(known, epsilon)


def _covered(known: Known, epsilon: float) -> Row:
    channel = ours(MECHANISM, epsilon)
    inside = float(bound(channel, known.values, known.box)[0])
    whole = float(agreement(known.surface, channel)[0])
    return {
        "group": NOISE,
        "method": MECHANISM,
        "epsilon": epsilon,
        "quantity": "share",
        "curvote": percent(inside / whole),
        "bound": percent(inside),
    }


def figure(given: Sequence[Row], found: Evidence | None = None) -> Figure:
    """Draw a map for each model: answers, our box, the printed one, noised records."""
    project = project_of("qcu-figure-10", found)
    drawn, axes = panels(len(MODELS), 3.8)
    for ax, model in zip(axes, MODELS, strict=True):
        known = known_of(project, model, RECORD)
        _map(ax, known, having(given, learner=model, quantity="value"))
        head(ax, model)
    fitting_legend(drawn, axes[0].get_legend_handles_labels()[0])
    return drawn


def _map(ax: Axes, known: Known, sides: Sequence[Row]) -> None:
    plane.draw(ax, plane.same(known.question), known.values[0], ("age/100", "bmi/50"))
    for column, line, label in (
        ("curvote", "-", "box, curvote"),
        ("published", ":", "box, printed"),
    ):
        ends = np.reshape([row[column] for row in sides], (2, 2))
        plane.outline(ax, ends[:, 0], ends[:, 1], label, ls=line, color=style.INK)
    _noise(ax, known.values)


def _noise(ax: Axes, values: Any) -> None:
    """Draw the window of the law, and records noised by it."""
    law, rng = pm(_SHOWN), np.random.default_rng(1)
    many = np.repeat(values, 300, axis=0)
    seen = np.column_stack([law.draw(column, rng) for column in many.T])
    label = f"noised by {MECHANISM}, epsilon {_SHOWN:g} a feature"
    ax.plot(*seen.T, ls="", marker=".", ms=2.5, color=style.MUTED, label=label)
    middle = np.clip(values[0], law.half, 1 - law.half)
    window = middle - law.half, middle + law.half
    plane.outline(ax, window[0], window[1], "its window", ls="--", color=style.BLUE)


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield how much one box covers of each model."""
    for model in MODELS:
        mine = having(given, learner=model, quantity="share")
        (area,) = having(mine, group=AREA)
        low = having(mine, group=NOISE, epsilon=1.0)[0]["curvote"]
        high = having(mine, group=NOISE, epsilon=8.0)[0]["curvote"]
        yield (
            f"{model}: one box covers {area['curvote']:.1f} % of the area with the"
            f" record's answer, and {low:.1f} to {high:.1f} % of the agreement"
            " (epsilon 1 to 8)"
        )
        (wrong,) = having(mine, group=WRONG)
        yield f"  in the printed box {wrong['curvote']:.1f} % have another answer"
