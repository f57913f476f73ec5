"""Boxes of QCU in which the answer stays: figures 3, 5 and 10."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from curvote.base.entropy import SeededEntropy
from curvote.base.validate import FloatArray
from curvote.papers.figure import draw_panels
from curvote.papers.qcu import laws, studies
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, beside_published, percent, published_rows, select
from curvote.report import style
from curvote.systems.utility.method import profile
from curvote.systems.utility.method.engines.base import Question

GRID: Final = 200


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


def box_mask(ends: FloatArray) -> FloatArray:
    """Return 1 on the cells of the grid that a box (2, 2) holds: a feature a row."""
    at = (np.arange(GRID) + 0.5) / GRID
    first, second = ((at >= low) & (at <= high) for low, high in ends)
    return np.outer(second, first).astype(np.float64)


def _draw_map(ax: Axes, question: Question, names: Sequence[str]) -> None:
    """Colour the square by the answer, and mark the question's first record."""
    ax.imshow(
        same_answer_map(question),
        cmap=ListedColormap(["#f6dfc4", "#dfe8f3"]),
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


def _draw_box(ax: Axes, ends: FloatArray, label: str, **ink: Any) -> None:
    """Draw a box of these ends (2, 2), a feature a row."""
    low, sides = ends[:, 0], ends[:, 1] - ends[:, 0]
    ax.add_patch(Rectangle(tuple(low), *sides, fill=False, label=label, lw=1.6, **ink))


LARGEST, STRAIGHT = "l-infinity", "l2"
SEED: Final = 20240801
_FINE: Final = 2.0**-20  # of the radius


def radius_rows(_: Evidence) -> Iterator[Row]:
    """Yield the radius by ``learner`` and ``group`` (the norm).

    ``curvote`` is certain, ``claimed`` what the paper's tests find.
    """
    base: Row = {"setting": "(0.5, 0.5)", "quantity": "value"}
    rows = []
    for name in studies.CLASSIFIERS:
        analysis = studies.analyze_example(name, precision=_FINE)
        tested = profile.published_boxes(analysis.question, SeededEntropy(SEED))
        radii = {"curvote": analysis.box.radius[0], "claimed": tested.radius[0]}
        numbers = {column: float(radius) for column, radius in radii.items()}
        rows.append(base | {"learner": name, "group": LARGEST} | numbers)
    # Straight to the circle that is the boundary of example 4.
    away = float(np.hypot(*(studies.POINT[0] + 1))) - 2 * math.sqrt(math.log(2) + 1)
    straight = {"learner": "quadratic", "group": STRAIGHT, "curvote": abs(away)}
    rows.append(base | straight)
    return beside_published(rows, published_rows("qcu", "qcu_text.csv", figure="3"))


def radius_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw the answers of both classifiers with the printed ball and ours."""

    def draw(ax: Axes, row: Row) -> None:
        _draw_map(ax, studies.analyze_example(row["learner"]).question, ("x_u", "x_v"))
        for label, radius, line in (
            ("printed", row["published"], ":"),
            ("curvote", row["curvote"], "-"),
        ):
            _draw_box(ax, studies.POINT.T + radius * np.array([-1, 1]), label, ls=line)

    title = "{learner}: {curvote:.4f}".format_map
    return draw_panels(select(rows, group=LARGEST), draw, 3.6, title=title)


def radius_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the radii by the printed weights."""
    (row,) = select(rows, learner="network")
    yield (
        f"the printed weights give {row['curvote']:.4f}; the paper finds"
        f" {row['published']:.2f} for them"
    )
    near, far = select(rows, learner="quadratic")
    yield (
        f"the quadratic one that they shall replicate: {near['curvote']:.4f}, and"
        f" {far['curvote']:.4f} straight to its circle"
    )


SIDES: Final = ("u from", "u to", "v from", "v to")
OURS: Final = "ours"
MECHANISM: Final = "pm_01"
EPSILONS: Final = (1.0, 2.0, 4.0, 8.0)


def _box_ends(rows: Sequence[Row], column: str) -> FloatArray:
    """Return the ends of a box (2, 2) whose sides stand in a column, in their order."""
    return np.reshape([row[column] for row in select(rows, quantity="value")], (2, 2))


def rectangle_rows(_: Evidence) -> Iterator[Row]:
    """Yield the sides of the boxes, and the noise's mass in each.

    ``setting`` names the box: "a" and "b" are printed, "ours" is found. The agreement
    itself stands in every row of that quantity, the noise in the box as its bound.
    """
    printed = published_rows("qcu", "qcu_text.csv", figure="5")
    for name in studies.CLASSIFIERS:
        analysis = studies.analyze_example(name)
        boxes = {box: _box_ends(select(printed, setting=box), "value") for box in "ab"}
        boxes[OURS] = np.column_stack([analysis.box.low[0], analysis.box.high[0]])
        for setting, ends in boxes.items():
            by = "curvote" if setting == OURS else "published"
            for side, value in zip(SIDES, ends.ravel(), strict=True):
                base = {"setting": setting, "learner": name, "group": side}
                yield base | {"quantity": "value", by: float(value)}
        for epsilon in EPSILONS:
            channel = laws.our_channel(MECHANISM, epsilon)
            law = laws.paper_law(MECHANISM, epsilon)
            paper = laws.printed_agreement(analysis.surface, studies.POINT, law)[0]
            ours = laws.agreement(analysis.surface, channel)[0]
            noise = channel.law(studies.POINT)
            for setting, ends in boxes.items():
                low, high = ends.T[:, None]
                yield {
                    "setting": setting,
                    "learner": name,
                    "method": MECHANISM,
                    "epsilon": epsilon,
                    "quantity": "agreement",
                    "curvote": percent(float(paper)),
                    "corrected": percent(float(ours)),
                    "bound": percent(float(noise.box(low, high)[0])) if noise else None,
                }


def rectangle_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw the answers of both classifiers with all boxes."""

    def draw(ax: Axes, name: str) -> None:
        _draw_map(ax, studies.analyze_example(name).question, ("x_u", "x_v"))
        for setting, column, label, line in (
            ("a", "published", "printed (a)", ":"),
            ("b", "published", "printed (b)", "--"),
            (OURS, "curvote", OURS, "-"),
        ):
            sides = select(rows, learner=name, setting=setting)
            _draw_box(ax, _box_ends(sides, column), label, ls=line)

    return draw_panels(list(studies.CLASSIFIERS), draw, 3.6)


def rectangle_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the noise's mass outside each box."""
    for name in studies.CLASSIFIERS:
        inside = select(rows, learner=name, epsilon=2.0)
        texts = ", ".join(f"{row['setting']} {row['bound']:.1f}" for row in inside)
        yield (
            f"{name}, {MECHANISM}, epsilon 2 a feature: agreement"
            f" {inside[0]['corrected']:.1f} %, of the noise in the boxes: {texts}"
        )


RECORD: Final = "age 79"
MODELS: Final = ("stroke-logistic", "stroke-forest")
MAP_SIDES: Final = ("age from", "age to", "bmi from", "bmi to")
AREA, NOISE = "area with the same answer", "agreement"
WRONG: Final = "other answers in the printed box"
_MAP_EPSILON: Final = 2.0  # the epsilon whose noise is drawn


def map_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield the sides of the box around a record, and the share covered.

    ``group`` "agreement" is of the noised answers that survive; the others are areas,
    also that of other answers within the printed box. In percent.
    """
    printed = published_rows("qcu", "qcu_text.csv", figure="10")
    for model in MODELS:
        analysis = studies.analyze_setting(evidence.project, model, RECORD)
        base = {"setting": RECORD, "learner": model}
        ends = np.column_stack([analysis.box.low[0], analysis.box.high[0]])
        sides = [
            base | {"group": side, "quantity": "value", "curvote": float(value)}
            for side, value in zip(MAP_SIDES, ends.ravel(), strict=True)
        ]
        sides = list(beside_published(sides, printed))
        yield from sides
        same, inside = same_answer_map(analysis.question), box_mask(ends)
        paper = box_mask(_box_ends(sides, "published"))
        areas = {
            AREA: float((same * inside).sum() / same.sum()),
            WRONG: float(((1 - same) * paper).sum() / paper.sum()),
        }
        for group, area in areas.items():
            yield base | {"group": group, "quantity": "share", "curvote": percent(area)}
        for epsilon in map(float, range(1, 9)):
            channel = laws.our_channel(MECHANISM, epsilon)
            bound = profile.certified_bound(channel, analysis.values, analysis.box)
            certain = float(bound[0])
            total = float(laws.agreement(analysis.surface, channel)[0])
            yield base | {
                "group": NOISE,
                "method": MECHANISM,
                "epsilon": epsilon,
                "quantity": "share",
                "curvote": percent(certain / total),
                "bound": percent(certain),
            }


def map_figure(rows: Sequence[Row], evidence: Evidence) -> Figure:
    """Draw a map for each model: answers, boxes, and records noised by the law."""
    law = laws.paper_law(MECHANISM, _MAP_EPSILON)
    half = laws.window_shape(MECHANISM, _MAP_EPSILON)[2]

    def draw(ax: Axes, model: str) -> None:
        analysis = studies.analyze_setting(evidence.project, model, RECORD)
        sides, rng = select(rows, learner=model), np.random.default_rng(1)
        _draw_map(ax, analysis.question, ("age/100", "bmi/50"))
        ink = {"color": style.INK}
        _draw_box(ax, _box_ends(sides, "curvote"), "box, curvote", ls="-", **ink)
        _draw_box(ax, _box_ends(sides, "published"), "box, printed", ls=":", **ink)
        many = np.repeat(analysis.values, 300, axis=0)
        noised = np.column_stack([law.draw(column, rng) for column in many.T])
        label = f"noised by {MECHANISM}, epsilon {_MAP_EPSILON:g} a feature"
        ax.plot(*noised.T, ls="", marker=".", ms=2.5, color=style.MUTED, label=label)
        middle = np.clip(analysis.values[0], half, 1 - half)
        window = middle[:, None] + half * np.array([-1, 1])
        _draw_box(ax, window, "its window", ls="--", color=style.BLUE)

    return draw_panels(MODELS, draw, 3.8)


def map_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the share that one box covers of each model."""
    for model in MODELS:
        inside = select(rows, learner=model, quantity="share")
        (area,) = select(inside, group=AREA)
        low = select(inside, group=NOISE, epsilon=1.0)[0]["curvote"]
        high = select(inside, group=NOISE, epsilon=8.0)[0]["curvote"]
        yield (
            f"{model}: one box covers {area['curvote']:.1f} % of the area with the"
            f" record's answer, and {low:.1f} to {high:.1f} % of the agreement"
            " (epsilon 1 to 8)"
        )
        (wrong,) = select(inside, group=WRONG)
        yield f"  in the printed box {wrong['curvote']:.1f} % have another answer"
