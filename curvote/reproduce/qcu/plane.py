"""A classifier's answers on the unit square of two features, with boxes on it."""

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


def same(question: Question) -> FloatArray:
    """Return 1 where the first record's answer stays, else 0: (GRID, GRID).

    A row a value of the second feature, a column a value of the first, both in the
    middle of cells.
    """
    at = (np.arange(GRID) + 0.5) / GRID
    first, second = np.meshgrid(at, at)
    many = np.tile(question.records[0], (GRID**2, 1))
    many[:, list(question.sensitive)] = np.column_stack([first.ravel(), second.ravel()])
    clean = question.model.predict(question.records[:1])
    found = question.model.predict(many) == clean
    return np.asarray(found.reshape(GRID, GRID), dtype=np.float64)


def covered(map_: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Return the share of the cells with the record's answer that a box holds."""
    return float((map_ * _inside(low, high)).sum() / map_.sum())


def other(map_: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Return the share of the cells in a box that have another answer."""
    inside = _inside(low, high)
    return float(((1 - map_) * inside).sum() / inside.sum())


def _inside(low: FloatArray, high: FloatArray) -> FloatArray:
    at = (np.arange(GRID) + 0.5) / GRID
    held = [(at >= a) & (at <= b) for a, b in zip(low, high, strict=True)]
    return np.outer(held[1], held[0]).astype(np.float64)


def draw(ax: Axes, map_: FloatArray, point: FloatArray, names: tuple[str, str]) -> None:
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


def outline(
    ax: Axes, low: FloatArray, high: FloatArray, label: str, **ink: Any
) -> None:
    """Draw a box."""
    sides = np.asarray(high) - low
    shape = Rectangle(tuple(low), *sides, fill=False, label=label, **{"lw": 1.6} | ink)
    ax.add_patch(shape)
