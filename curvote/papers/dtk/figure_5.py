"""Figure 5: the same 500 records over more and more servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from curvote.papers import drawing
from curvote.papers.dtk.comparison import (
    LOOKS,
    TUNERS,
    Drift,
    accuracy_rows,
    private_rows,
)
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, column_levels, distinct_values, select
from curvote.report import style

GAMMAS = (0.25, 1.0, 4.0)
SOURCES = (1, 2, 4, 9, 19)
DRIFTS = {
    f"gamma={gamma:g} m={m}": Drift(gamma, m, total=500)
    for gamma in GAMMAS
    for m in SOURCES
}


terminal_rows = private_rows  # whose privacy is as claimed


def rows(_: str, evidence: Evidence) -> list[Row]:
    """Return the accuracy of every classifier for each gamma and number of sources."""
    tuners = {name: it for name, it in TUNERS.items() if name != "DTK gaussian printed"}
    return accuracy_rows(evidence, tuners, DRIFTS)


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel for each gamma and epsilon: accuracy against m."""
    names = [name for name in LOOKS if select(results, protocol=name)]
    charts = [(gamma, level) for level in column_levels(results) for gamma in GAMMAS]
    fig, axes = drawing.panels(len(charts), 3.2)
    for ax, (gamma, level) in zip(axes, charts, strict=True):
        level_rows = select(results, epsilon=level)
        for name in names:
            line_rows = _rows_by_sources(level_rows, name, gamma)
            ink = style.line_style(LOOKS[name])
            drawing.draw_points(ax, SOURCES, line_rows, zorder=LOOKS[name].above, **ink)
            ax.set_xscale("log")
            ax.set_xticks(SOURCES, [str(m) for m in SOURCES])
            ax.minorticks_off()
            ax.set_xlabel("sources m")
        drawing.error_axis(ax, results)
        drawing.panel_title(ax, f"gamma={gamma:g}, epsilon {level:g}")
    drawing.label_y_axes(axes, drawing.ACCURACY)
    drawing.fitting_legend(
        fig, [drawing.PlotLine(name, LOOKS[name], ()).handle() for name in names]
    )
    return fig


def _rows_by_sources(results: Sequence[Row], name: str, gamma: float) -> list[Row]:
    """Return the rows of one classifier by the number of sources."""
    settings = [f"gamma={gamma:g} m={m}" for m in SOURCES]
    return [select(results, protocol=name, setting=at)[0] for at in settings]


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
