"""Figure 5: the same 500 records over more and more servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvote.papers.drawing import (
    PlotLine,
    distinct_values,
    draw_points,
    error_axis,
    fitting_legend,
    label_y_axes,
    panel_title,
    panels,
)
from curvote.papers.dtk import comparison
from curvote.papers.dtk.comparison import LOOKS, TUNERS, Drift
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, column_levels, complete_rows, select
from curvote.report import style

GAMMAS = (0.25, 1.0, 4.0)
SOURCES = (1, 2, 4, 9, 19)
DRIFTS = {
    f"gamma={gamma:g} m={m}": Drift(gamma, m, total=500)
    for gamma in GAMMAS
    for m in SOURCES
}


def rows(evidence: Evidence) -> list[Row]:
    """Return the accuracy of every classifier for each gamma and number of sources."""
    tuners = {name: it for name, it in TUNERS.items() if name != "DTK gaussian printed"}
    ran = comparison.adaptive_rows(evidence)
    return complete_rows([*comparison.tuned_rows(evidence, tuners, DRIFTS), *ran])


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel for each gamma and epsilon: accuracy against m."""
    names = [name for name in LOOKS if select(results, protocol=name)]
    charts = [(gamma, level) for level in column_levels(results) for gamma in GAMMAS]
    fig, axes = panels(len(charts), 3.2)
    for ax, (gamma, level) in zip(axes, charts, strict=True):
        for name in names:
            _draw_line(
                ax, name, _rows_by_sources(select(results, epsilon=level), name, gamma)
            )
        error_axis(ax, results)
        panel_title(ax, f"gamma={gamma:g}, epsilon {level:g}")
    label_y_axes(axes, "accuracy (%)")
    fitting_legend(fig, [PlotLine(name, LOOKS[name], ()).handle() for name in names])
    return fig


def _draw_line(ax: Axes, name: str, results: Sequence[Row]) -> None:
    draw_points(
        ax, SOURCES, results, zorder=LOOKS[name].above, **style.line_style(LOOKS[name])
    )
    ax.set_xscale("log")
    ax.set_xticks(SOURCES, [str(m) for m in SOURCES])
    ax.minorticks_off()
    ax.set_xlabel("sources m")


def _rows_by_sources(results: Sequence[Row], name: str, gamma: float) -> list[Row]:
    """Return the rows of one classifier by the number of sources."""
    settings = [f"gamma={gamma:g} m={m}" for m in SOURCES]
    return [select(results, protocol=name, setting=at)[0] for at in settings]


def terminal_rows(results: Sequence[Row]) -> Sequence[Row]:
    """Return the rows whose privacy is as claimed."""
    return comparison.private_rows(results)


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield each classifier's loss from 1 source to 19."""
    yield "the paper: accuracy declines as the records are spread, for all methods"
    for name in distinct_values(results, "protocol"):
        falls = []
        for level in column_levels(results):
            for gamma in GAMMAS:
                ends = _rows_by_sources(select(results, epsilon=level), name, gamma)
                falls.append(ends[0]["curvote"] - ends[-1]["curvote"])
        yield (
            f"  {name}: {min(falls):.1f} to {max(falls):.1f} points less at m = 19"
            " than at 1"
        )
