"""Table 1 and corollary 3.2: regime ends printed, corrected and by (4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from scipy.optimize import brentq

from curvote.base.errors import InternalError
from curvote.papers.drawing import decade_axis, fitting_legend, panel_title, panels
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, completed, select
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
def rows(_: str, __: Evidence | None = None) -> Iterator[Row]:
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


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel a setting: the deciding rate by both tables and by (4)."""
    fig, axes = panels(len(TABLE), height=1.55, columns=2)
    for ax, setting in zip(axes, TABLE, strict=True):
        _draw_strips(ax, setting, select(results, setting=setting.columns))
        panel_title(ax, setting.title)
    patches = [Patch(color=COLOURS[name], label=text) for name, text in WORDS.items()]
    fitting_legend(fig, patches)
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
    decade_axis(ax, at[0], at[-1])


def conclusions(results: Sequence[Row]) -> Iterator[str]:
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
