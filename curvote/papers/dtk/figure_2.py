"""Figure 2: regression functions of the target and of the sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

from curvote.base.validate import FloatArray
from curvote.papers.drawing import panel_title, panels
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, completed, select

GAMMAS = (0.5, 1.5)
POINTS = 30  # on each side, in the middle of a cell: none lies on a line of 1/2
TARGET, SOURCE = "eta_T", "eta_S"


def eta(x1: FloatArray, x2: FloatArray, gamma: float | None = None) -> FloatArray:
    """Return P(Y = 1) of section 6.1 at points of [0, 1]^2, by server.

    1/2 + sign(u v) |u v|^(1/4) with u, v = x1 - 1/2, x2 - 1/2; its distance from 1/2 is
    raised to gamma at a source; cut to [0, 1].
    """
    product = (x1 - 0.5) * (x2 - 0.5)
    away = np.minimum(np.abs(product) ** 0.25, 0.5)
    if gamma is not None:
        away = away**gamma
    return np.asarray(np.clip(0.5 + np.sign(product) * away, 0, 1))


@completed
def rows(_: str, __: Evidence | None = None) -> Iterator[Row]:
    """Yield the regression functions on a grid of points."""
    side = (np.arange(POINTS) + 0.5) / POINTS
    first, second = (part.ravel() for part in np.meshgrid(side, side, indexing="ij"))
    for gamma in (None, *GAMMAS):
        name = TARGET if gamma is None else f"{SOURCE} gamma={gamma:g}"
        values = eta(first, second, gamma)
        for x1, x2, value in zip(first, second, values, strict=True):
            yield {
                "setting": f"x1={x1:.4g} x2={x2:.4g}",
                "method": name,
                "quantity": "value",
                "curvote": float(value),
            }


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a map for each function."""
    names = list(dict.fromkeys(row["method"] for row in results))
    fig, axes = panels(len(names), height=3.0)
    for ax, name in zip(axes, names, strict=True):
        values = [row["curvote"] for row in select(results, method=name)]
        table = np.reshape(values, (POINTS, POINTS)).T
        mesh = ax.imshow(
            table, origin="lower", extent=(0, 1, 0, 1), cmap="cividis", vmin=0, vmax=1
        )
        ax.set_xlabel("x1")
        ax.set_ylabel("x2")
        panel_title(ax, name)
    bar = fig.colorbar(mesh, ax=axes, shrink=0.85, aspect=22)
    bar.outline.set_visible(False)
    bar.set_label("probability of class 1")
    return fig


def terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return some rows of the diagonal above 1/2, for the terminal."""
    return [
        row
        for start in range(0, len(results), POINTS**2)
        for row in results[start : start + POINTS**2 : POINTS + 1][POINTS // 2 :: 3]
    ]


def conclusions(_: Sequence[Row]) -> Iterator[str]:
    """Yield the property that the functions share."""
    yield "All cross 1/2 on the same two lines: no gamma moves the best rule."
    yield "gamma below 1 draws a source away from 1/2, gamma above 1 towards it."
