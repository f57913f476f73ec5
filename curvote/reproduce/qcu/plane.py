"""Answers of a classifier on the unit square of two features, with boxes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from curvote.reporting import style
from curvote.utility.engines.base import Question
from curvote.validate import FloatArray

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


def draw_map(
    ax: Axes, map_: FloatArray, point: FloatArray, names: tuple[str, str]
) -> None:
    """Colour the square by the answer, and mark the record."""
    ax.imshow(
        map_,
        cmap=ListedColormap([_OTHER, _SAME]),
        origin="lower",
        extent=(0, 1, 0, 1),
        vmin=0,
        vmax=1,
        interpolation="nearest",
        aspect="equal",
    )
    ax.plot(*point, marker="o", ms=5, color=style.INK, ls="")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])


def draw_box(
    ax: Axes, low: FloatArray, high: FloatArray, label: str, **ink: Any
) -> None:
    """Draw a box."""
    sides = np.asarray(high) - low
    shape = Rectangle(tuple(low), *sides, fill=False, label=label, **{"lw": 1.6} | ink)
    ax.add_patch(shape)
