"""Figure 1: excess risk against epsilon by (4), and the deciding rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.papers import drawing
from curvote.papers.dtk.table_1 import COLOURS, FIGURE, WORDS, Setting
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, completed, select
from curvote.report import style
from curvote.systems.transfer.method import phases

LOWEST, HIGHEST, A_DECADE = -5, 1, 24
ALPHA = 1.0
_RISKS = (-2.6, 0.15)
_GAMMAS = (0.5, 2.5)


@completed
def rows(_: str, __: Evidence | None = None) -> Iterator[Row]:
    """Yield log excess risk by setting and epsilon, with the deciding rate."""
    at = np.logspace(LOWEST, HIGHEST, (HIGHEST - LOWEST) * A_DECADE + 1)
    for setting in FIGURE:
        law = setting.phase_arguments
        names = np.asarray(phases.dominant_by_comparison(epsilon=at, **law))
        risks = phases.log_risk(at, **law, alpha=ALPHA)
        for epsilon, name, risk in zip(at, names, risks, strict=True):
            yield {
                "setting": setting.columns,
                "d": setting.d,
                "epsilon": float(f"{epsilon:.6g}"),
                "method": str(name),
                "quantity": "value",
                "curvote": float(risk),
            }


def terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows at powers of ten, for the terminal."""
    decades = {float(f"1e{power}") for power in range(LOWEST, HIGHEST + 1)}
    return [row for row in results if row["epsilon"] in decades]


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting, coloured by the deciding rate."""
    sizes = dict.fromkeys(setting.n0 for setting in FIGURE)
    fig, axes = drawing.panels(len(FIGURE) + len(sizes), height=3.1, columns=3)
    free_axes = iter(axes)
    for n0 in sizes:
        settings_of = [setting for setting in FIGURE if setting.n0 == n0]
        for setting in settings_of:
            selected = select(results, setting=setting.columns)
            _draw_curve(next(free_axes), setting, selected)
        _draw_phases(next(free_axes), settings_of)
    drawing.label_y_axes(axes, "log excess risk")
    handles = [
        Line2D([], [], color=COLOURS[name], lw=5, label=text)
        for name, text in WORDS.items()
    ]
    drawing.fitting_legend(fig, handles)
    return fig


def _draw_curve(ax: Axes, setting: Setting, results: Sequence[Row]) -> None:
    at = np.array([row["epsilon"] for row in results])
    risks = np.array([row["curvote"] for row in results])
    names = np.array([row["method"] for row in results])
    for name in dict.fromkeys(names):
        decided = names == name
        # Each stretch goes on to the first point of the next one: no gap between them.
        decided |= np.roll(decided, 1) & (np.arange(len(decided)) > 0)
        ax.plot(at, np.where(decided, risks, np.nan), color=COLOURS[name], lw=3.2)
    drawing.decade_axis(ax, 10.0**LOWEST, 10.0**HIGHEST)
    ax.set_ylim(*_RISKS)
    ax.grid(axis="y")
    drawing.panel_title(ax, setting.title)


def _draw_phases(ax: Axes, settings: Sequence[Setting]) -> None:
    """Colour the plane of epsilon and gamma by the deciding rate."""
    at = np.logspace(LOWEST, HIGHEST, 400)
    gammas, order = np.linspace(*_GAMMAS, 300), list(COLOURS)
    laws = (settings[0]._replace(gamma=gamma).phase_arguments for gamma in gammas)
    names = [phases.dominant_by_comparison(epsilon=at, **law) for law in laws]
    ax.pcolormesh(
        at,
        gammas,
        sum(rank * (np.array(names) == name) for rank, name in enumerate(order)),
        cmap=ListedColormap(list(COLOURS.values())),
        norm=BoundaryNorm(np.arange(len(order) + 1) - 0.5, len(order)),
        shading="nearest",
        rasterized=True,
    )
    for setting in settings:
        ax.axhline(setting.gamma, color=style.INK, lw=0.8, ls=":")
    drawing.decade_axis(ax, 10.0**LOWEST, 10.0**HIGHEST)
    ax.set_ylabel("gamma")
    drawing.panel_title(ax, f"what decides, n0 {settings[0].n0:,}")


def conclusions(_: Sequence[Row]) -> Iterator[str]:
    """Yield the numbers that the paper does not print."""
    first = FIGURE[0]
    yield (
        f"The paper prints beta and d only; here m = {first.m}, n = {first.n:,} and"
        f" alpha = {ALPHA:g}; n0 is a little above and below sqrt(m) n."
    )
