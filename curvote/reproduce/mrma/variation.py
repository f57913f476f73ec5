"""Total variation between values and their reports (figure A.6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.measure import Look
from curvote.privacy import label_budget_share
from curvote.reporting import methods, style
from curvote.reproduce.drawing import (
    distinct_values,
    draw_points,
    fitting_legend,
    log_axis,
    panels,
)
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, select

_VARIATION_LOOKS = (
    Look("#d55e00", "o"),
    Look("#0072b2", "s"),
    Look("#009e73", "^", size=5),
    Look("#cc79a7", "D", size=4),
)


def figure(rows: Sequence[Row], evidence: Evidence | None = None) -> Figure:
    """Draw the closed form as lines and what the reports show as points."""
    fig, (ax,) = panels(1, height=4.0)
    dimensions = sorted(distinct_values(rows, "d"))
    levels = sorted(distinct_values(rows, "epsilon"))
    looks = dict(zip(dimensions, _VARIATION_LOOKS, strict=False))
    handles = []
    for d in dimensions:
        look = looks.get(d, methods.OTHER_LOOK)
        ax.plot(
            *_exact_variation(d, levels, _label_share(evidence, d)),
            color=look.colour,
            lw=1.3,
        )
        selected, ink = select(rows, d=d), style.line_style(look)
        draw_points(
            ax,
            [row["epsilon"] for row in selected],
            selected,
            zorder=4,
            **ink | {"ls": ""},
        )
        handles.append(Line2D([], [], label=f"d = {d}", **ink))
    log_axis(ax, levels)
    ax.set_ylim(0, 103)
    ax.grid(axis="y")
    ax.set_ylabel("total variation (%)")
    exact = Line2D([], [], color=style.MUTED, lw=1.3, label="exact")
    dots = Line2D([], [], color=style.MUTED, marker="o", ls="", label="from reports")
    fitting_legend(fig, [*handles, exact, dots])
    return fig


def _label_share(evidence: Evidence | None, d: int) -> float:
    """Return the share of epsilon that the run's clients spent on labels."""
    if not evidence or not evidence.configs:
        return 0.0
    return label_budget_share(evidence.configs[0]["privatize"]["label_share"], d)


def _exact_variation(
    d: int, levels: list[float], share: float
) -> tuple[list[float], list[float]]:
    from curvote.theory.variation import total_variation

    at = [float(e) for e in np.geomspace(levels[0], levels[-1], 200)]
    return at, [100 * total_variation(d, (1 - share) * e) for e in at]
