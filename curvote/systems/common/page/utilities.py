"""Page sections of utilities: ridges of noised votes, and how often none passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from curvote.pipeline.run.results import RunView
from curvote.report import style
from curvote.report.data import (
    FloatArray,
    Section,
    find_method,
    format_level,
    format_percent,
    learners,
    series_names,
    sorted_levels,
)
from curvote.report.data import add_series as named
from curvote.report.figures import draw_left_label, draw_legend

UTILITY_RANGE = (-0.5, 1.5)


@dataclass(frozen=True, eq=False)
class Utilities(Section):
    """Estimated utilities before reversal, by epsilon and learner."""

    table: pd.DataFrame

    name: ClassVar[str] = "utilities"
    place: ClassVar[str] = "results"

    @property
    def cuts(self) -> list[float]:
        """All cutoffs, in order."""
        return sorted(self.table["cutoff"].unique())

    @property
    def estimates(self) -> str:
        """Name of the estimates, which need no truth."""
        return "the utilities estimated below"

    @property
    def alt(self) -> str:
        """Description of the ridges."""
        top = max(_epsilon_levels(self.table))
        values = self.table.loc[self.table["epsilon"] == top, "utility"]
        low, high = np.quantile(values.to_numpy(float), [0.1, 0.9])
        return (
            "Distributions of the estimated utilities of the weak classifiers, one"
            " ridge for each epsilon, one panel for each learner. At epsilon"
            f" {top:g}, 80 % lie between {low:.2f} and {high:.2f}."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a ridge per epsilon, a panel per learner.

        Right of the cutoff a classifier is used, left of its mirror 1 - cutoff it is
        used reversed. Values outside ``UTILITY_RANGE`` count in the printed shares.
        """
        names, levels = learners(self.table), _epsilon_levels(self.table)
        height = 0.75 + 0.56 * len(levels)
        figure, axes = style.make_panels(len(names), narrow=narrow, height=height)
        for ax, name in zip(axes, names, strict=True):
            group = self.table[self.table["learner"] == name]
            cutoff = float(group["cutoff"].iloc[0])
            for base, epsilon in enumerate(reversed(levels)):
                values = group.loc[group["epsilon"] == epsilon, "utility"]
                _draw_ridge(ax, values.to_numpy(float), base, cutoff)
            ax.set_yticks(range(len(levels)), list(map(format_level, reversed(levels))))
            ax.set_ylim(-0.08, len(levels))
            ax.set_xlim(*UTILITY_RANGE)
            ax.set_xticks([0, 0.5, 1])
            ax.set_xlabel("estimated utility, before reversal")
            for at in (cutoff, 1 - cutoff):
                ax.axvline(at, color=style.INK, lw=0.8, ls=(0, (2, 2)))
            ax.spines["left"].set_visible(False)
            ax.grid(axis="y")
            ax.set_title(style.wrap_title(name))
        draw_left_label(axes, narrow, "epsilon")
        patches = [
            Patch(color=style.REVERSED, label="used reversed"),
            Patch(color=style.UNUSED, label="not used"),
            Patch(color=style.USED, label="used as it is"),
        ]
        draw_legend(figure, patches, len(patches))
        return figure


def _epsilon_levels(table: pd.DataFrame) -> list[float]:
    return sorted(float(value) for value in table["epsilon"].unique())


def _draw_ridge(ax: Axes, values: FloatArray, base: int, cut: float) -> None:
    values = values[np.isfinite(values)]
    if not len(values):
        return
    grid, density = smooth_density(values)
    x = np.sort(np.append(grid, (1 - cut, cut)))
    top = base + 0.66 * np.interp(x, grid, density) / density.max()
    parts = [
        (x <= 1 - cut, style.REVERSED),
        ((x >= 1 - cut) & (x <= cut), style.UNUSED),
        (x >= cut, style.USED),
    ]
    for mask, colour in parts:
        ax.fill_between(x, base, top, where=list(mask), color=colour, lw=0, alpha=0.75)
    ax.plot(x, top, color=style.INK, lw=0.7)
    shares = ((values < 1 - cut).mean(), (values > cut).mean())
    for share, at, side in zip(shares, (-0.48, 1.48), ("left", "right"), strict=True):
        text = "< 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"
        ax.text(at, base + 0.7, text, ha=side, size=7.5)


def smooth_density(
    values: FloatArray, points: int = 201
) -> tuple[FloatArray, FloatArray]:
    """Return grid and density of ``values`` over ``UTILITY_RANGE``, smoothed.

    Estimated utilities lie on a lattice of step 1/(n (2q - 1)); the Gaussian kernel
    is at least 0.8 of its step wide, or the ridge would show the lattice.
    """
    low, high = UTILITY_RANGE
    step = (high - low) / (points - 1)
    distinct = np.unique(values.round(9))
    lattice = np.median(np.diff(distinct)) if 1 < len(distinct) < 400 else 0.0
    width = max(0.6 * values.std() * len(values) ** -0.2, 0.8 * lattice, 2 * step)
    reach = int(np.ceil(4 * width / step))
    edges = low + step * (np.arange(-reach, points + reach + 1) - 0.5)
    counts, _ = np.histogram(values, edges)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    x: FloatArray = low + step * np.arange(points, dtype=np.float64)
    return x, np.convolve(counts, kernel, "valid").astype(np.float64)


def gather_utilities(views: Sequence[RunView], _: pd.DataFrame) -> Utilities | None:
    """Return the estimated utilities of all cells, if any classifier was voted on."""
    parts = []
    for view in views:
        if view.holds("aggregate", "ensemble"):
            names = filter(None, (view.cell["learner"], view.cell["setting"]))
            columns = {
                "epsilon": view.cell["epsilon"],
                "learner": ", ".join(names),
                "utility": view.read("aggregate", "ensemble")["utility"].to_numpy(),
                # From 1/2 on a classifier is used as it is, whatever the cutoff.
                "cutoff": max(view.metadata("aggregate")["cutoff"], 0.5),
            }
            parts.append(pd.DataFrame(columns))
    return Utilities(pd.concat(parts, ignore_index=True)) if parts else None


@dataclass(frozen=True, eq=False)
class NonePassed(Section):
    """Scores with ``none_passed``, the share of replicates; missing without a cutoff.

    Where it is the share of nothing, no classifier had to pass.
    """

    cutoff: float
    scores: pd.DataFrame

    name: ClassVar[str] = "none-passed"
    place: ClassVar[str] = "numbers"

    @property
    def levels(self) -> list[str]:
        """Levels of the table, as text."""
        return [format_level(value) for value in sorted_levels(self.scores)]

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """Rows of (method and learner, percents by level), where it happened."""
        scores = named(self.scores)
        scores = scores.assign(share=pd.to_numeric(scores["none_passed"]).fillna(0))
        rows = []
        for series in series_names(scores):
            for learner in learners(scores):
                is_own = (scores["series"] == series) & (scores["learner"] == learner)
                shares = scores[is_own].set_index("level")["share"]
                if shares.gt(0).any():
                    levels = sorted_levels(self.scores)
                    percents = [format_percent(shares.get(at), 0) for at in levels]
                    rows.append((f"{find_method(series).label}, {learner}", percents))
        return rows


def gather_none_passed(
    views: Sequence[RunView], scores: pd.DataFrame
) -> NonePassed | None:
    """Return how often no classifier passed, at the first cutoff."""
    if scores.empty:
        return None
    return NonePassed(views[0].setting("aggregate.cutoff"), scores)
