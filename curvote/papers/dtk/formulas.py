"""Formulas of DTK: table 1 with corollary 3.2, and figures 1 and 2."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.optimize import brentq

from curvote.base.errors import InternalError
from curvote.data.simulation.records import regression
from curvote.papers import drawing
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, completed, distinct_values, select
from curvote.report import style
from curvote.systems.transfer.method import phases

_PAPER: Final = (0.25, 2)  # beta and d of its figure 1


class Setting(NamedTuple):
    """One target with n0 records and m equal sources with n each."""

    n0: int
    n: int
    m: int
    beta: float
    d: int
    gamma: float

    @property
    def columns(self) -> str:
        """The setting's columns of a row, without d."""
        parts = self._asdict()
        parts.pop("d")
        return " ".join(f"{name}={value:g}" for name, value in parts.items())

    @property
    def title(self) -> str:
        """The setting as the heading of a panel."""
        parts = (
            "" if (self.beta, self.d) == _PAPER else f", beta {self.beta:g}, d {self.d}"
        )
        sizes = f"n0 {self.n0:,}, n {self.n:,}, m {self.m}"
        return f"gamma {self.gamma:g}{parts}: {sizes}"

    @property
    def phase_arguments(self) -> dict[str, Any]:
        """The arguments of `curvote.systems.transfer.method.phases`."""
        return self._asdict()


def _settings_for(n0: int, *gammas: float) -> tuple[Setting, ...]:
    return tuple(Setting(n0, 1000, 40, *_PAPER, gamma) for gamma in gammas)


# The target alone does better than the sources alone at the least epsilon where n0 is
# above sqrt(m) n = 6325, worse below; gamma(*) is near 2.
FIGURE: Final = (*_settings_for(7000, 0.8, 1.4), *_settings_for(6000, 1.4, 2.4))
# Every row of table 1, gamma = 1, large targets, and a setting in which the row
# gamma <= 1 of the printed table lacks a regime.
TABLE: Final = (
    *FIGURE,
    *_settings_for(2000, 1.0),
    *_settings_for(20_000, 0.8, 1.2),
    Setting(216_614, 74_409, 3, 0.97, 4, 0.85),
)


COLOURS = {
    phases.NOTHING: style.LINE,
    phases.TARGET_PRIVATE: "#9fc8e4",
    phases.TARGET: "#0072b2",
    phases.SOURCES_PRIVATE: "#f2b48a",
    phases.SOURCES: "#d55e00",
}
WORDS = {
    phases.NOTHING: "1: nothing is learnt",
    phases.TARGET_PRIVATE: "Pt: target, privacy costs",
    phases.TARGET: "NPt: target, privacy is free",
    phases.SOURCES_PRIVATE: "Ps: sources, privacy costs",
    phases.SOURCES: "NPs: sources, privacy is free",
}
_SAME = 1e-9
_SIDES = {"printed": True, "corrected": False}


@completed
def regime_rows(_: str, __: Evidence | None = None) -> Iterator[Row]:
    """Yield a row for each end of a regime that occurs in a setting.

    ``published`` is corollary 3.2's formula as printed (None where table 1 has no such
    end), ``corrected`` the right one, ``curvote`` what (4) itself gives; ``group`` says
    which rate gives way to which.
    """
    for setting in TABLE:
        right = phases.regimes(**setting.phase_arguments)
        printed = phases.regimes(**setting.phase_arguments, as_printed=True)
        base = {"setting": setting.columns, "d": setting.d, "quantity": "value"}
        yield base | {
            "method": "gamma_star",
            "published": printed.gamma_star,
            "curvote": _gamma_star(setting),
            "corrected": right.gamma_star,
        }
        for switch in phases.switches(**setting.phase_arguments):
            name = _end_of(switch, right)
            absent = name == "eps_21" and setting.gamma <= 1
            yield base | {
                "method": name,
                "group": f"{switch.before} to {switch.after}",
                "published": None if absent else getattr(printed, name),
                "curvote": switch.epsilon,
                "corrected": getattr(right, name),
            }


def _gamma_star(setting: Setting) -> float:
    """Return the gamma at which the sources lose at a large epsilon."""

    def source_lead(gamma: float) -> float:
        target, _, sources, _ = phases.rate_lines(
            **setting.phase_arguments | {"gamma": gamma}
        )
        return sources.level - target.level

    return float(brentq(source_lead, 1e-6, 100))


def _end_of(switch: phases.Switch, right: phases.Regimes) -> str:
    for name, end in right._asdict().items():
        if name.startswith("eps") and math.isclose(end, switch.epsilon, rel_tol=_SAME):
            return name
    raise InternalError(f"table 1 has no end at {switch}")


def regime_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting: the deciding rate by both tables and by (4)."""
    fig, axes = drawing.panels(len(TABLE), height=1.55, columns=2)
    for ax, setting in zip(axes, TABLE, strict=True):
        _draw_strips(ax, setting, select(results, setting=setting.columns))
        drawing.panel_title(ax, setting.title)
    patches = [Patch(color=COLOURS[name], label=text) for name, text in WORDS.items()]
    drawing.fitting_legend(fig, patches)
    return fig


def _draw_strips(ax: Axes, setting: Setting, results: Sequence[Row]) -> None:
    """Draw three bars along epsilon, and a line at each end."""
    ends = [row["curvote"] for row in results if row["method"] != "gamma_star"]
    at = np.geomspace(min(ends) / 10, max(ends) * 10, 1201)
    ends_of = {
        side: phases.dominant(epsilon=at, **setting.phase_arguments, as_printed=printed)
        for side, printed in _SIDES.items()
    } | {"by (4)": phases.dominant_by_comparison(epsilon=at, **setting.phase_arguments)}
    for height, names in enumerate(map(np.asarray, reversed(ends_of.values()))):
        cuts = np.flatnonzero(names[1:] != names[:-1]) + 1  # where another name begins
        for first, last in pairwise([0, *cuts, len(names) - 1]):
            width, ink = at[last] - at[first], COLOURS[str(names[first])]
            ax.barh(height, width, left=at[first], height=0.72, color=ink)
    ax.set_yticks(range(len(ends_of)), list(reversed(ends_of)))
    drawing.decade_axis(ax, at[0], at[-1])


def regime_conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield how many ends agree, and where the printed table differs."""
    right = [row for row in results if _nearly_equal(row["corrected"], row["curvote"])]
    yield f"{len(right)} of {len(results)} ends by the corrected table are those of (4)"
    for row in results:
        if row["published"] is None:
            yield f"not in print: {_row_label(row)} at {row['curvote']:.4g}"
        elif not _nearly_equal(row["published"], row["curvote"]):
            difference = f"{row['published']:.4g} instead of {row['curvote']:.4g}"
            yield f"misprinted: {_row_label(row)}, {difference}"


def _nearly_equal(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=_SAME)


def _row_label(row: Row) -> str:
    return f"{row['method']} ({row['group']}; {row['setting']} d={row['d']})"


LOWEST, HIGHEST, A_DECADE = -5, 1, 24
ALPHA = 1.0
_RISKS = (-2.6, 0.15)
_GAMMAS = (0.5, 2.5)


@completed
def risk_rows(_: str, __: Evidence | None = None) -> Iterator[Row]:
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


def risk_terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return the rows at powers of ten, for the terminal."""
    decades = {float(f"1e{power}") for power in range(LOWEST, HIGHEST + 1)}
    return [row for row in results if row["epsilon"] in decades]


def risk_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
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


def risk_conclusions(_: Sequence[Row]) -> Iterator[str]:
    """Yield the numbers that the paper does not print."""
    first = FIGURE[0]
    yield (
        f"The paper prints beta and d only; here m = {first.m}, n = {first.n:,} and"
        f" alpha = {ALPHA:g}; n0 is a little above and below sqrt(m) n."
    )


GAMMAS = (0.5, 1.5)
POINTS = 30  # on each side, in the middle of a cell: none lies on a line of 1/2
TARGET, SOURCE = "eta_T", "eta_S"


@completed
def regression_rows(_: str, __: Evidence | None = None) -> Iterator[Row]:
    """Yield the regression functions on a grid of points."""
    side = (np.arange(POINTS) + 0.5) / POINTS
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    for gamma in (None, *GAMMAS):
        name = TARGET if gamma is None else f"{SOURCE} gamma={gamma:g}"
        values = regression(points, gamma or 1.0)
        for (x1, x2), value in zip(points, values, strict=True):
            yield {
                "setting": f"x1={x1:.4g} x2={x2:.4g}",
                "method": name,
                "quantity": "value",
                "curvote": float(value),
            }


def regression_figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a map for each function."""
    names = distinct_values(results, "method")
    fig, axes = drawing.panels(len(names), height=3.0)
    for ax, name in zip(axes, names, strict=True):
        values = [row["curvote"] for row in select(results, method=name)]
        table = np.reshape(values, (POINTS, POINTS)).T
        mesh = ax.imshow(
            table, origin="lower", extent=(0, 1, 0, 1), cmap="cividis", vmin=0, vmax=1
        )
        ax.set_xlabel("x1")
        ax.set_ylabel("x2")
        drawing.panel_title(ax, name)
    bar = fig.colorbar(mesh, ax=axes, shrink=0.85, aspect=22)
    bar.outline.set_visible(False)
    bar.set_label("probability of class 1")
    return fig


def regression_terminal_rows(results: Sequence[Row]) -> list[Row]:
    """Return some rows of the diagonal above 1/2, for the terminal."""
    return [
        row
        for start in range(0, len(results), POINTS**2)
        for row in results[start : start + POINTS**2 : POINTS + 1][POINTS // 2 :: 3]
    ]


def regression_conclusions(_: Sequence[Row]) -> Iterator[str]:
    """Yield the property that the functions share."""
    yield "All cross 1/2 on the same two lines: no gamma moves the best rule."
    yield "gamma below 1 draws a source away from 1/2, gamma above 1 towards it."
