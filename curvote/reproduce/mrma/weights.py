"""Weight omega of a value given its report (figure 1), and the agreement g."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.special import expit

from curvote.privacy import label_budget_share
from curvote.reporting import methods, style
from curvote.reproduce.drawing import distinct_values, draw_points, panels
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, select

LEVELS = (10, 1, 0.1, 0.01)
_WEIGHT_LOOKS = [
    methods.series_look(name) for name in ("mrma", "mr", "all_data", "best_single")
]


def figure(rows: Sequence[Row], evidence: Evidence | None = None) -> Figure:
    """Draw a heatmap of omega for each epsilon, and g by theory and reports."""
    fig, axes = panels(len(LEVELS) + 1, height=3.1)
    for ax, level in zip(axes, LEVELS, strict=False):
        _draw_heatmap(fig, ax, level)
    config = evidence.configs[0] if evidence and evidence.configs else None
    _draw_agreement(axes[-1], rows, config)
    return fig


def _draw_heatmap(fig: Figure, ax: Axes, level: float) -> None:
    from curvote.theory.weight import omega

    z, z0 = np.linspace(-1, 1, 201), np.linspace(-2, 2, 401)
    weights = omega(z[None, :], z0[:, None], level)
    mesh = ax.pcolormesh(
        z, z0, weights, cmap="cividis", shading="nearest", rasterized=True
    )
    ax.set_title(f"weight omega, epsilon {level:g}")
    ax.set_xlabel("value z")
    ax.set_ylabel("report z0")
    bar = fig.colorbar(mesh, ax=ax, shrink=0.9, aspect=18)
    bar.outline.set_visible(False)


def _draw_agreement(
    ax: Axes, rows: Sequence[Row], config: dict[str, Any] | None
) -> None:
    handles = []
    levels = sorted(distinct_values(rows, "epsilon"), reverse=True)
    for level, look in zip(levels, _WEIGHT_LOOKS, strict=False):
        selected = select(rows, epsilon=level)
        ink = style.line_style(look) | {"ls": ""}
        at = [float(row["setting"].removeprefix("z0=")) for row in selected]
        draw_points(ax, at, selected, **ink)
        handles.append(Line2D([], [], label=f"epsilon {level:g}", **ink))
        if config:
            ax.plot(*_theoretical_agreement(level, config), color=look.colour, lw=1)
            handles[-1].set_linestyle("-")
            handles[-1].set_linewidth(1)
    ax.set_title("g(z0), from reports" + " and by theory" * bool(config))
    ax.set_xlabel("report z0")
    ax.set_ylabel("g (%)")
    ax.grid(axis="y")
    # In the free place beside it, which the layout must not take into account.
    beside = ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.1, 0.5))
    beside.set_in_layout(False)


def _theoretical_agreement(
    epsilon: float, config: dict[str, Any]
) -> tuple[list[float], list[float]]:
    """Return g of proposition 2 for the run's budgets of z and y."""
    from curvote.theory.weight import pointwise_utility

    share = label_budget_share(config["privatize"]["label_share"], 1)
    slope = config["source"]["slope"]
    z0 = np.linspace(-2, 2, 161)
    g = pointwise_utility(
        lambda z: expit(slope * z),
        z0,
        epsilon_z=(1 - share) * epsilon,
        keep=float(expit(share * epsilon)),
    )
    return z0.tolist(), (100 * g).tolist()
