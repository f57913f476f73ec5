"""Figure 5: the same 500 records over more and more servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvote.reporting import style
from curvote.reproduce.drawing import (
    Line,
    distinct,
    error_axis,
    fitting_legend,
    head,
    label_left,
    panels,
    points,
)
from curvote.reproduce.dtk import against
from curvote.reproduce.dtk.against import LOOKS, TUNERS
from curvote.reproduce.dtk.tuned import Drift
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished, having, levels

GAMMAS = (0.25, 1.0, 4.0)
SOURCES = (1, 2, 4, 9, 19)
DRIFTS = {
    f"gamma={gamma:g} m={m}": Drift(gamma, m, total=500)
    for gamma in GAMMAS
    for m in SOURCES
}


def rows(found: Evidence) -> list[Row]:
    """Return the accuracy of every classifier for each gamma and number of sources."""
    tuners = {name: it for name, it in TUNERS.items() if name != "DTK gaussian printed"}
    ran = against.adaptive(found)
    return finished([*against.tuned(found, tuners, DRIFTS), *ran])


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel for each gamma and epsilon: accuracy against m."""
    names = [name for name in LOOKS if having(given, protocol=name)]
    charts = [(gamma, level) for level in levels(given) for gamma in GAMMAS]
    drawn, axes = panels(len(charts), 3.2)
    for ax, (gamma, level) in zip(axes, charts, strict=True):
        for name in names:
            _line(ax, name, _along(having(given, epsilon=level), name, gamma))
        error_axis(ax, given)
        head(ax, f"gamma={gamma:g}, epsilon {level:g}")
    label_left(axes, "accuracy (%)")
    fitting_legend(drawn, [Line(name, LOOKS[name], ()).handle() for name in names])
    return drawn


def _line(ax: Axes, name: str, given: Sequence[Row]) -> None:
    points(ax, SOURCES, given, zorder=LOOKS[name].above, **style.inks(LOOKS[name]))
    ax.set_xscale("log")
    ax.set_xticks(SOURCES, [str(m) for m in SOURCES])
    ax.minorticks_off()
    ax.set_xlabel("sources m")


def _along(given: Sequence[Row], name: str, gamma: float) -> list[Row]:
    """Return the rows of one classifier by the number of sources."""
    settings = [f"gamma={gamma:g} m={m}" for m in SOURCES]
    return [having(given, protocol=name, setting=at)[0] for at in settings]


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return what is private as it says."""
    return against.brief(given)


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield how much each classifier loses from 1 source to 19."""
    yield "the paper: accuracy declines as the records are spread, for all methods"
    for name in distinct(given, "protocol"):
        falls = []
        for level in levels(given):
            for gamma in GAMMAS:
                ends = _along(having(given, epsilon=level), name, gamma)
                falls.append(ends[0]["curvote"] - ends[-1]["curvote"])
        yield (
            f"  {name}: {min(falls):.1f} to {max(falls):.1f} points less at m = 19"
            " than at 1"
        )
