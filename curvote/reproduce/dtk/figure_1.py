"""Figure 1: excess risk against epsilon by (4), and which rate decides where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.reporting import style
from curvote.reproduce.drawing import (
    decades,
    fitting_legend,
    head,
    label_left,
    panels,
)
from curvote.reproduce.dtk.settings import FIGURE, Setting
from curvote.reproduce.dtk.table_1 import COLOURS, WORDS
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished, having
from curvote.transfer import phases

LOWEST, HIGHEST, A_DECADE = -5, 1, 24
ALPHA = 1.0
_RISKS = (-2.6, 0.15)
_GAMMAS = (0.5, 2.5)


def rows(_: Evidence | None = None) -> list[Row]:
    """Return log excess risk by setting and epsilon; ``method`` is what decides."""
    return finished(row for setting in FIGURE for row in _of(setting))


def _of(setting: Setting) -> Iterator[Row]:
    at = np.logspace(LOWEST, HIGHEST, (HIGHEST - LOWEST) * A_DECADE + 1)
    names = np.asarray(phases.brute(epsilon=at, **setting.given))
    risks = phases.log_risk(at, **setting.given, alpha=ALPHA)
    for epsilon, name, risk in zip(at, names, risks, strict=True):
        yield {
            "setting": setting.named,
            "d": setting.d,
            "epsilon": float(f"{epsilon:.6g}"),
            "method": str(name),
            "quantity": "value",
            "curvote": float(risk),
        }


def brief(given: Sequence[Row]) -> list[Row]:
    """Return the rows at powers of ten, for the terminal."""
    decades = {float(f"1e{power}") for power in range(LOWEST, HIGHEST + 1)}
    return [row for row in given if row["epsilon"] in decades]


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting, coloured by what decides; beside them all gammas."""
    sizes = dict.fromkeys(setting.n0 for setting in FIGURE)
    drawn, axes = panels(len(FIGURE) + len(sizes), height=3.1, columns=3)
    left = iter(axes)
    for n0 in sizes:
        mine = [setting for setting in FIGURE if setting.n0 == n0]
        for setting in mine:
            _curve(next(left), setting, having(given, setting=setting.named))
        _phases(next(left), mine)
    label_left(axes, "log excess risk")
    handles = [
        Line2D([], [], color=COLOURS[name], lw=5, label=text)
        for name, text in WORDS.items()
    ]
    fitting_legend(drawn, handles)
    return drawn


def _curve(ax: Axes, setting: Setting, given: Sequence[Row]) -> None:
    at = np.array([row["epsilon"] for row in given])
    risks = np.array([row["curvote"] for row in given])
    names = np.array([row["method"] for row in given])
    for name in dict.fromkeys(names):
        mine = names == name
        # Each stretch goes on to the first point of the next one: no gap between them.
        mine |= np.roll(mine, 1) & (np.arange(len(mine)) > 0)
        ax.plot(at, np.where(mine, risks, np.nan), color=COLOURS[name], lw=3.2)
    decades(ax, 10.0**LOWEST, 10.0**HIGHEST)
    ax.set_ylim(*_RISKS)
    ax.grid(axis="y")
    head(ax, setting.title)


def _phases(ax: Axes, shown: Sequence[Setting]) -> None:
    """Colour the plane of epsilon and gamma; lines mark the gammas of the curves."""
    at = np.logspace(LOWEST, HIGHEST, 400)
    gammas, order = np.linspace(*_GAMMAS, 300), list(COLOURS)
    names = [
        phases.brute(epsilon=at, **shown[0]._replace(gamma=gamma).given)
        for gamma in gammas
    ]
    ax.pcolormesh(
        at,
        gammas,
        sum(rank * (np.array(names) == name) for rank, name in enumerate(order)),
        cmap=ListedColormap(list(COLOURS.values())),
        norm=BoundaryNorm(np.arange(len(order) + 1) - 0.5, len(order)),
        shading="nearest",
        rasterized=True,
    )
    for setting in shown:
        ax.axhline(setting.gamma, color=style.INK, lw=0.8, ls=":")
    decades(ax, 10.0**LOWEST, 10.0**HIGHEST)
    ax.set_ylabel("gamma")
    head(ax, f"what decides, n0 {shown[0].n0:,}")


def said(_: Sequence[Row]) -> Iterator[str]:
    """Yield what the paper does not print."""
    first = FIGURE[0]
    yield (
        f"The paper prints beta and d only; here m = {first.m}, n = {first.n:,} and"
        f" alpha = {ALPHA:g}; n0 is a little above and below sqrt(m) n."
    )
