"""Formulas of DTK: table 1 with corollary 3.2, and figures 1 and 2."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.optimize import brentq

from curvote.base.errors import InternalError
from curvote.data.simulation.records import regression
from curvote.papers import figure
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, distinct_values, select
from curvote.report import style
from curvote.systems.transfer.method import phases


def _with_gamma(sizes: phases.Sizes, gamma: float) -> phases.Sizes:
    return {**sizes, "gamma": gamma}


def _settings_for(n0: int, *gammas: float) -> list[phases.Sizes]:
    """Return settings of a target and 40 equal sources, beta and d of figure 1."""
    return [
        {"n0": n0, "n": 1000, "m": 40, "beta": 0.25, "d": 2, "gamma": gamma}
        for gamma in gammas
    ]


# The target alone does better than the sources alone at the least epsilon where n0 is
# above sqrt(m) n = 6325, worse below; gamma(*) is near 2.
FIGURE: Final = (*_settings_for(7000, 0.8, 1.4), *_settings_for(6000, 1.4, 2.4))
# Every row of table 1, gamma = 1, large targets, and a setting in which the row
# gamma <= 1 of the printed table lacks a regime.
TABLE: Final[tuple[phases.Sizes, ...]] = (
    *FIGURE,
    *_settings_for(2000, 1.0),
    *_settings_for(20_000, 0.8, 1.2),
    {"n0": 216_614, "n": 74_409, "m": 3, "beta": 0.97, "d": 4, "gamma": 0.85},
)
# Colour of each deciding rate, and its words.
RATES: Final = {
    phases.NOTHING: (style.LINE, "1: nothing is learnt"),
    phases.TARGET_PRIVATE: ("#9fc8e4", "Pt: target, privacy costs"),
    phases.TARGET: ("#0072b2", "NPt: target, privacy is free"),
    phases.SOURCES_PRIVATE: ("#f2b48a", "Ps: sources, privacy costs"),
    phases.SOURCES: ("#d55e00", "NPs: sources, privacy is free"),
}
_SAME = 1e-9


def setting_name(sizes: phases.Sizes) -> str:
    """Return the ``setting`` of a row: the sizes without d, which has a column."""
    parts = (f"{n}={sizes[n]:g}" for n in ("n0", "n", "m", "beta", "gamma"))
    return " ".join(parts)


def _panel_title(sizes: phases.Sizes) -> str:
    usual = (sizes["beta"], sizes["d"]) == (0.25, 2)
    parts = "" if usual else f", beta {sizes['beta']:g}, d {sizes['d']}"
    servers = f"n0 {sizes['n0']:,}, n {sizes['n']:,}, m {sizes['m']}"
    return f"gamma {sizes['gamma']:g}{parts}: {servers}"


def regime_rows(_: Evidence) -> Iterator[Row]:
    """Yield a row for each end of a regime that occurs in a setting.

    ``published`` is corollary 3.2's formula as printed (None where table 1 has no such
    end), ``corrected`` the right one, ``curvote`` what (4) itself gives; ``group`` says
    which rate gives way to which.
    """
    for sizes in TABLE:

        def source_lead(gamma: float, sizes: phases.Sizes = sizes) -> float:
            target, _, sources, _ = phases.rate_lines(**_with_gamma(sizes, gamma))
            return sources.level - target.level

        right, printed = (
            phases.regimes(**sizes, as_printed=it) for it in (False, True)
        )
        base = {"setting": setting_name(sizes), "d": sizes["d"], "quantity": "value"}
        yield base | {
            "method": "gamma_star",
            "published": printed.gamma_star,
            # The gamma at which the sources lose at a large epsilon.
            "curvote": float(brentq(source_lead, 1e-6, 100)),
            "corrected": right.gamma_star,
        }
        for switch in phases.switches(**sizes):
            ends = right._asdict().items()
            near = (
                n
                for n, end in ends
                if n.startswith("eps") and _is_near(end, switch.epsilon)
            )
            name = next(near, None)
            if name is None:
                raise InternalError(f"table 1 has no end at {switch}")
            absent = name == "eps_21" and sizes["gamma"] <= 1
            yield base | {
                "method": name,
                "group": f"{switch.before} to {switch.after}",
                "published": None if absent else getattr(printed, name),
                "curvote": switch.epsilon,
                "corrected": getattr(right, name),
            }


def _is_near(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=_SAME)


def regime_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw a panel a setting: three bars along epsilon, by both tables and by (4)."""

    def draw(ax: Axes, sizes: phases.Sizes) -> None:
        inside = select(rows, setting=setting_name(sizes))
        ends = [row["curvote"] for row in inside if row["method"] != "gamma_star"]
        at = np.geomspace(min(ends) / 10, max(ends) * 10, 1201)
        bars = {
            "by (4)": phases.dominant_by_comparison(epsilon=at, **sizes),
            "corrected": phases.dominant(epsilon=at, **sizes),
            "printed": phases.dominant(epsilon=at, **sizes, as_printed=True),
        }
        for height, names in enumerate(map(np.asarray, bars.values())):
            cuts = np.flatnonzero(names[1:] != names[:-1]) + 1  # where another begins
            for first, last in pairwise([0, *cuts, len(names) - 1]):
                width, ink = at[last] - at[first], RATES[str(names[first])][0]
                ax.barh(height, width, left=at[first], height=0.72, color=ink)
        ax.set_yticks(range(len(bars)), list(bars))
        figure.decade_axis(ax, at[0], at[-1])

    patches = [Patch(color=colour, label=text) for colour, text in RATES.values()]
    return figure.draw_panels(
        TABLE, draw, 1.55, columns=2, handles=patches, title=_panel_title
    )


def regime_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many ends agree, and where the printed table differs."""
    right = sum(_is_near(row["corrected"], row["curvote"]) for row in rows)
    yield f"{right} of {len(rows)} ends by the corrected table are those of (4)"
    for row in rows:
        place = f"{row['method']} ({row['group']}; {row['setting']} d={row['d']})"
        if row["published"] is None:
            yield f"not in print: {place} at {row['curvote']:.4g}"
        elif not _is_near(row["published"], row["curvote"]):
            difference = f"{row['published']:.4g} instead of {row['curvote']:.4g}"
            yield f"misprinted: {place}, {difference}"


LOWEST, HIGHEST, A_DECADE = -5, 1, 24
ALPHA = 1.0


def risk_rows(_: Evidence) -> Iterator[Row]:
    """Yield log excess risk by setting and epsilon, with the deciding rate."""
    at = np.logspace(LOWEST, HIGHEST, (HIGHEST - LOWEST) * A_DECADE + 1)
    for sizes in FIGURE:
        names = np.asarray(phases.dominant_by_comparison(epsilon=at, **sizes))
        risks = phases.log_risk(at, **sizes, alpha=ALPHA)
        for epsilon, name, risk in zip(at, names, risks, strict=True):
            yield {
                "setting": setting_name(sizes),
                "d": sizes["d"],
                "epsilon": float(f"{epsilon:.6g}"),
                "method": str(name),
                "quantity": "value",
                "curvote": float(risk),
            }


def risk_terminal_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows at powers of ten, for the terminal."""
    decades = {float(f"1e{power}") for power in range(LOWEST, HIGHEST + 1)}
    return [row for row in rows if row["epsilon"] in decades]


def risk_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw a panel a setting, coloured by the deciding rate, and a map for each n0."""

    def draw(ax: Axes, sizes: Sequence[phases.Sizes]) -> None:
        if len(sizes) == 1:
            _draw_risk(ax, select(rows, setting=setting_name(sizes[0])))
        else:
            _draw_phases(ax, sizes)
        figure.decade_axis(ax, 10.0**LOWEST, 10.0**HIGHEST)

    def title(sizes: Sequence[phases.Sizes]) -> str:
        by_n0 = f"what decides, n0 {sizes[0]['n0']:,}"
        return by_n0 if len(sizes) > 1 else _panel_title(sizes[0])

    panels = []
    for n0 in dict.fromkeys(sizes["n0"] for sizes in FIGURE):
        alike = [sizes for sizes in FIGURE if sizes["n0"] == n0]
        panels += [*([sizes] for sizes in alike), alike]
    lines = [
        Line2D([], [], color=colour, lw=5, label=text)
        for colour, text in RATES.values()
    ]
    return figure.draw_panels(
        panels, draw, 3.1, columns=3, y="log excess risk", handles=lines, title=title
    )


def _draw_risk(ax: Axes, rows: Sequence[Row]) -> None:
    at, risks, names = (
        np.array([row[name] for row in rows])
        for name in ("epsilon", "curvote", "method")
    )
    for name in dict.fromkeys(names):
        decided = names == name
        # Each stretch goes on to the first point of the next one: no gap between them.
        decided |= np.roll(decided, 1) & (np.arange(len(decided)) > 0)
        ax.plot(at, np.where(decided, risks, np.nan), color=RATES[name][0], lw=3.2)
    ax.set_ylim(-2.6, 0.15)
    ax.grid(axis="y")


def _draw_phases(ax: Axes, settings: Sequence[phases.Sizes]) -> None:
    """Colour the plane of epsilon and gamma by the deciding rate."""
    at, gammas = np.logspace(LOWEST, HIGHEST, 400), np.linspace(0.5, 2.5, 300)
    laws = [_with_gamma(settings[0], gamma) for gamma in gammas]
    names = np.array([phases.dominant_by_comparison(epsilon=at, **it) for it in laws])
    ax.pcolormesh(
        at,
        gammas,
        sum(rank * (names == name) for rank, name in enumerate(RATES)),
        cmap=ListedColormap([colour for colour, _ in RATES.values()]),
        norm=BoundaryNorm(np.arange(len(RATES) + 1) - 0.5, len(RATES)),
        shading="nearest",
        rasterized=True,
    )
    for sizes in settings:
        ax.axhline(sizes["gamma"], color=style.INK, lw=0.8, ls=":")
    ax.set_ylabel("gamma")


GAMMAS = (0.5, 1.5)
POINTS = 30  # on each side, in the middle of a cell: none lies on a line of 1/2
TARGET = "eta_T"


def regression_rows(_: Evidence) -> Iterator[Row]:
    """Yield the regression functions on a grid of points."""
    side = (np.arange(POINTS) + 0.5) / POINTS
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    functions = {TARGET: 1.0} | {f"eta_S gamma={gamma:g}": gamma for gamma in GAMMAS}
    for name, gamma in functions.items():
        for (x1, x2), value in zip(points, regression(points, gamma), strict=True):
            yield {
                "setting": f"x1={x1:.4g} x2={x2:.4g}",
                "method": name,
                "quantity": "value",
                "curvote": float(value),
            }


def regression_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw a map for each function."""

    def draw(ax: Axes, name: str) -> None:
        values = [row["curvote"] for row in select(rows, method=name)]
        table, extent = np.reshape(values, (POINTS, POINTS)).T, (0, 1, 0, 1)
        ax.imshow(table, origin="lower", extent=extent, cmap="cividis", vmin=0, vmax=1)
        ax.set_xlabel("x1")
        ax.set_ylabel("x2")

    maps = figure.draw_panels(distinct_values(rows, "method"), draw, 3.0)
    mesh = maps.axes[-1].images[0]
    bar = maps.colorbar(mesh, ax=maps.axes, shrink=0.85, aspect=22)
    bar.outline.set_visible(False)
    bar.set_label("probability of class 1")
    return maps


def regression_terminal_rows(rows: Sequence[Row]) -> list[Row]:
    """Return some rows of the diagonal above 1/2, for the terminal."""
    return [
        row
        for start in range(0, len(rows), POINTS**2)
        for row in rows[start : start + POINTS**2 : POINTS + 1][POINTS // 2 :: 3]
    ]
