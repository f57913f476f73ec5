"""Boxes of QCU in which the answer stays: figures 3, 5 and 10."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from curvote.base.entropy import SeededEntropy
from curvote.base.validate import FloatArray
from curvote.papers.drawing import fitting_legend, panel_title, panels
from curvote.papers.qcu import laws, studies
from curvote.papers.reproduction import Evidence, evidence_project
from curvote.papers.rows import Row, completed, percent, select
from curvote.pipeline.config.project import Project
from curvote.report import style
from curvote.systems.utility.method import profile
from curvote.systems.utility.method.engines.base import Question, Surface

GRID: Final = 200
_SAME, _OTHER = "#dfe8f3", "#f6dfc4"


def same_answer_map(question: Question) -> FloatArray:
    """Return 1 where the first record's answer stays, else 0, on a grid.

    A row a value of the second feature, a column a value of the first, both in the
    middle of cells.
    """
    at = (np.arange(GRID) + 0.5) / GRID
    first, second = np.meshgrid(at, at)
    many = np.tile(question.records[0], (GRID**2, 1))
    many[:, list(question.sensitive)] = np.column_stack([first.ravel(), second.ravel()])
    clean = question.model.predict(question.records[:1])
    same = question.model.predict(many) == clean
    return np.asarray(same.reshape(GRID, GRID), dtype=np.float64)


def covered_share(map_: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Return the share of same-answer cells that a box holds."""
    return float((map_ * _box_mask(low, high)).sum() / map_.sum())


def other_share(map_: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Return the share of a box's cells with another answer."""
    inside = _box_mask(low, high)
    return float(((1 - map_) * inside).sum() / inside.sum())


def _box_mask(low: FloatArray, high: FloatArray) -> FloatArray:
    at = (np.arange(GRID) + 0.5) / GRID
    masks = [(at >= a) & (at <= b) for a, b in zip(low, high, strict=True)]
    return np.outer(masks[1], masks[0]).astype(np.float64)


def draw_map(ax: Axes, question: Question, names: tuple[str, str]) -> None:
    """Colour the square by the answer, and mark the question's first record."""
    ax.imshow(
        same_answer_map(question),
        cmap=ListedColormap([_OTHER, _SAME]),
        origin="lower",
        extent=(0, 1, 0, 1),
        vmin=0,
        vmax=1,
        interpolation="nearest",
        aspect="equal",
    )
    ax.plot(*question.values[0], marker="o", ms=5, color=style.INK, ls="")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])


def draw_box(
    ax: Axes, low: FloatArray, high: FloatArray, label: str, **ink: Any
) -> None:
    """Draw a box."""
    sides = np.asarray(high) - low
    shape = Rectangle(tuple(low), *sides, fill=False, label=label, **{"lw": 1.6} | ink)
    ax.add_patch(shape)


LARGEST, STRAIGHT = "l-infinity", "l2"
SEED: Final = 20240801
_FINE: Final = 2.0**-20  # of the radius


@completed
def radius_rows(_: str, evidence: Evidence | None = None) -> Iterator[Row]:
    """Yield the radius by ``learner`` and ``group`` (the norm).

    ``curvote`` is certain, ``claimed`` what the paper's tests find.
    """
    base = {"setting": "(0.5, 0.5)", "quantity": "value"}
    for name, make in studies.CLASSIFIERS.items():
        query = studies.example_question(make())
        surface = studies.answer_surface(query)
        our_box = profile.certify_box(
            surface, query.values, bounds=query.bounds, precision=_FINE
        )
        tested = profile.published_boxes(query, SeededEntropy(SEED))
        yield base | {
            "learner": name,
            "group": LARGEST,
            "published": studies.PRINTED_RADIUS,
            "curvote": float(our_box.radius[0]),
            "claimed": float(tested.radius[0]),
        }
    distance = studies.quadratic_distance(studies.POINT[0])
    yield base | {"learner": "quadratic", "group": STRAIGHT, "curvote": distance}


def radius_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the answers of both classifiers with the printed ball and ours."""
    fig, axes = panels(len(studies.CLASSIFIERS), 3.6)
    for ax, (name, make) in zip(axes, studies.CLASSIFIERS.items(), strict=True):
        (row,) = select(results, learner=name, group=LARGEST)
        draw_map(ax, studies.example_question(make()), ("x_u", "x_v"))
        for label, column, line in (
            ("printed", "published", ":"),
            ("curvote", "curvote", "-"),
        ):
            low, high = (studies.POINT[0] + side * row[column] for side in (-1, 1))
            draw_box(ax, low, high, label, ls=line)
        panel_title(ax, f"{name}: {row['curvote']:.4f}")
    fitting_legend(fig, axes[0].get_legend_handles_labels()[0])
    return fig


def radius_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the radii by the printed weights."""
    (row,) = select(results, learner="network")
    yield (
        f"the printed weights give {row['curvote']:.4f}; the paper finds"
        f" {row['published']:.2f} for them"
    )
    near, far = select(results, learner="quadratic")
    yield (
        f"the quadratic one that they shall replicate: {near['curvote']:.4f}, and"
        f" {far['curvote']:.4f} straight to its circle"
    )


SIDES: Final = ("u from", "u to", "v from", "v to")
OURS: Final = "ours"
MECHANISM: Final = "pm_01"
EPSILONS: Final = (1.0, 2.0, 4.0, 8.0)


@completed
def rectangle_rows(_: str, evidence: Evidence | None = None) -> Iterator[Row]:
    """Yield the sides of the boxes, and the noise's mass in each.

    ``setting`` names the box: "a" and "b" are printed, "ours" is found. The agreement
    itself stands in every row of that quantity, the noise in the box as its bound.
    """
    for name, make in studies.CLASSIFIERS.items():
        query = studies.example_question(make())
        answers = studies.answer_surface(query)
        ours = profile.certify_box(answers, query.values, bounds=query.bounds)
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
    channel = laws.our_channel(MECHANISM, epsilon)
    law, noise_law = laws.paper_law(MECHANISM, epsilon), channel.law(studies.POINT)
    for setting, ends in boxes.items():
        low, high = ends.T[:, None]
        yield {
            "setting": setting,
            "learner": name,
            "method": MECHANISM,
            "epsilon": epsilon,
            "quantity": "agreement",
            "curvote": percent(
                float(laws.printed_agreement(answers, studies.POINT, law)[0])
            ),
            "corrected": percent(float(laws.agreement(answers, channel)[0])),
            "bound": percent(float(noise_law.box(low, high)[0])) if noise_law else None,
        }


def rectangle_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the answers of both classifiers with all boxes."""
    fig, axes = panels(len(studies.CLASSIFIERS), 3.6)
    lines = {"a": ":", "b": "--", OURS: "-"}
    for ax, (name, make) in zip(axes, studies.CLASSIFIERS.items(), strict=True):
        draw_map(ax, studies.example_question(make()), ("x_u", "x_v"))
        for setting, line in lines.items():
            low, high = _box_ends(select(results, learner=name, setting=setting)).T
            label = setting if setting == OURS else f"printed ({setting})"
            draw_box(ax, low, high, label, ls=line)
        panel_title(ax, name)
    fitting_legend(fig, axes[0].get_legend_handles_labels()[0])
    return fig


def _box_ends(results: Sequence[Row]) -> Any:
    sides = select(results, quantity="value")
    by = {row["group"]: row["curvote"] or row["published"] or 0.0 for row in sides}
    return np.reshape([by[side] for side in SIDES], (2, 2))


def rectangle_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the noise's mass outside each box."""
    for name in studies.CLASSIFIERS:
        selected = select(results, learner=name, epsilon=2.0)
        texts = ", ".join(f"{row['setting']} {row['bound']:.1f}" for row in selected)
        yield (
            f"{name}, {MECHANISM}, epsilon 2 a feature: agreement"
            f" {selected[0]['corrected']:.1f} %, of the noise in the boxes: {texts}"
        )


RECORD: Final = "age 79"
MODELS: Final = ("stroke-logistic", "stroke-forest")
MAP_EPSILONS: Final = tuple(map(float, range(1, 9)))
MAP_SIDES: Final = ("age from", "age to", "bmi from", "bmi to")
# Section 7.2.1.
PRINTED_SIDES: Final = {
    "stroke-logistic": (0.63, 1.0, 0.0, 1.0),
    "stroke-forest": (0.50, 1.0, 0.0, 0.62),
}
AREA, NOISE = "area with the same answer", "agreement"
WRONG: Final = "other answers in the printed box"
_MAP_EPSILON: Final = 2.0  # the epsilon whose noise is drawn


@completed
def map_rows(name: str, evidence: Evidence) -> Iterator[Row]:
    """Yield the sides of the box around a record, and the share covered.

    ``group`` "agreement" is of the noised answers that survive; the others are areas,
    also that of other answers within the printed box. In percent.
    """
    project = evidence_project(name, evidence)
    for model in MODELS:
        yield from _model_rows(project, model)


def _model_rows(project: Project, model: str) -> Iterator[Row]:
    robust_model = studies.analyze_setting(project, model, RECORD)
    low, high = robust_model.box.low[0], robust_model.box.high[0]
    ends = np.column_stack([low, high]).ravel()
    base = {"setting": RECORD, "learner": model}
    for side, value, printed_side in zip(
        MAP_SIDES, ends, PRINTED_SIDES[model], strict=True
    ):
        sides = {"group": side, "quantity": "value", "curvote": float(value)}
        yield base | sides | {"published": printed_side}
    map_ = same_answer_map(robust_model.question)
    box = np.reshape(PRINTED_SIDES[model], (2, 2))
    areas = {AREA: covered_share(map_, low, high), WRONG: other_share(map_, *box.T)}
    for group, area in areas.items():
        yield base | {"group": group, "quantity": "share", "curvote": percent(area)}
    for epsilon in MAP_EPSILONS:
        channel = laws.our_channel(MECHANISM, epsilon)
        bounds = profile.certified_bound(channel, robust_model.values, robust_model.box)
        inside = float(bounds[0])
        total = float(laws.agreement(robust_model.surface, channel)[0])
        yield base | {
            "group": NOISE,
            "method": MECHANISM,
            "epsilon": epsilon,
            "quantity": "share",
            "curvote": percent(inside / total),
            "bound": percent(inside),
        }


def map_figure(results: Sequence[Row], evidence: Evidence | None = None) -> Figure:
    """Draw a map for each model: answers, boxes and noised records."""
    project = evidence_project("qcu-figure-10", evidence)
    fig, axes = panels(len(MODELS), 3.8)
    for ax, model in zip(axes, MODELS, strict=True):
        robust_model = studies.analyze_setting(project, model, RECORD)
        sides = select(results, learner=model, quantity="value")
        draw_map(ax, robust_model.question, ("age/100", "bmi/50"))
        for column, line, label in (
            ("curvote", "-", "box, curvote"),
            ("published", ":", "box, printed"),
        ):
            ends = np.reshape([row[column] for row in sides], (2, 2))
            draw_box(ax, ends[:, 0], ends[:, 1], label, ls=line, color=style.INK)
        _draw_noise(ax, robust_model.values)
        panel_title(ax, model)
    fitting_legend(fig, axes[0].get_legend_handles_labels()[0])
    return fig


def _draw_noise(ax: Axes, values: Any) -> None:
    """Draw the window of the law, and records noised by it."""
    law, rng = laws.piecewise_mechanism(_MAP_EPSILON), np.random.default_rng(1)
    many = np.repeat(values, 300, axis=0)
    noised = np.column_stack([law.draw(column, rng) for column in many.T])
    label = f"noised by {MECHANISM}, epsilon {_MAP_EPSILON:g} a feature"
    ax.plot(*noised.T, ls="", marker=".", ms=2.5, color=style.MUTED, label=label)
    middle = np.clip(values[0], law.half, 1 - law.half)
    window = middle - law.half, middle + law.half
    draw_box(ax, window[0], window[1], "its window", ls="--", color=style.BLUE)


def map_conclusions(results: Sequence[Row]) -> Iterator[str]:
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
