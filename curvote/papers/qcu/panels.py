"""Panels of QCU's figures: agreement against epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from curvote.base.validate import FloatArray
from curvote.chain.measure import Look
from curvote.papers import drawing
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, column_as_ours, select
from curvote.report import style
from curvote.systems.utility.method.engines.base import Question

LOOKS: Final = {
    "pm_01": Look("#0072b2", "o"),
    "sw_01": Look("#009e73", "^"),
    "k_rr": Look("#d98c00", "s"),
    "exponential": Look("#b3346c", "D"),
    "laplace": Look("#6460c8", "v"),
    "gaussian": Look("#5c4a32", "h"),
}
_OUR_LOOK: Final = Look(style.INK, "", "-", 1.5)
_CLAIMED: Final = Look(style.INK, "", ":", 0.9, above=2)


def curves_by_records(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel for each model and records.

    A mechanism is a hue: a line what curvote finds, marks the printed draws, dots the
    printed lower bound.
    """
    names = dict.fromkeys((row["learner"], row["setting"]) for row in results)
    charts = {}
    for model, setting in names:
        selected = select(results, learner=model, setting=setting)
        charts[f"{model}, {setting}"] = _mechanism_lines(selected)
    return drawing.line_panels(charts, y="agreement (%)")


def _mechanism_lines(results: Sequence[Row]) -> list[drawing.PlotLine]:
    """Return three lines a mechanism; the legend names its marks, then the lines."""
    lines = []
    for name, look in LOOKS.items():
        selected = select(results, method=name)
        if selected:
            claimed, ours = (
                replace(line, colour=look.colour) for line in (_CLAIMED, _OUR_LOOK)
            )
            marks = replace(look, line="")
            lines += [
                drawing.PlotLine(name, claimed, column_as_ours(selected, "claimed")),
                drawing.PlotLine(name, ours, selected),
                drawing.PlotLine(name, marks, column_as_ours(selected, "published")),
            ]
    return [
        *lines,
        drawing.PlotLine("curvote", _OUR_LOOK, ()),
        drawing.PlotLine("printed draws", Look(style.INK, "o", ""), ()),
        drawing.PlotLine("printed lower bound", _CLAIMED, ()),
    ]


def mechanism_curves(
    panels_of: Mapping[str, Sequence[Row]],
    place: Callable[[Row], float],
    labels: tuple[str, str],
) -> Figure:
    """Draw a panel for each title, a line for each mechanism.

    Dotted is ours, where it differs. ``labels`` name the axes, x and y.
    """
    figure, axes = drawing.panels(len(panels_of), 3.4)
    for ax, (title, results) in zip(axes, panels_of.items(), strict=True):
        for name, look in LOOKS.items():
            selected = sorted(select(results, method=name), key=place)
            for column, line in (("curvote", "-"), ("corrected", ":")):
                at, values = map(place, selected), (row[column] for row in selected)
                ax.plot([*at], [*values], color=look.colour, ls=line, lw=1.4)
        ax.set_xlabel(labels[0])
        ax.grid(axis="y")
        drawing.panel_title(ax, title)
    drawing.label_y_axes(axes, labels[1])
    names = {row["method"] for results in panels_of.values() for row in results}
    handles = [
        drawing.PlotLine(name, replace(look, marker=""), ()).handle()
        for name, look in LOOKS.items()
        if name in names
    ]
    drawing.fitting_legend(figure, handles)
    return figure


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
