"""Figures of a page of private labels: accuracy by classes, and reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.axis import Axis
from curvote.chain.measure import Look
from curvote.protocols.labels.methods import ACCURACY, LABELS
from curvote.reporting import figures, style
from curvote.reporting.methods import methods_by_name
from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import mean_scores, series_looks
from curvote.run.results import RunView

K = Axis("k", lambda _: (), label="number of classes")
MOST_PANELS = 6


@dataclass(frozen=True, eq=False)
class ByClasses(Section):
    """``scores`` are accuracies by series, learner, epsilon and k."""

    scores: pd.DataFrame
    encoders: Sequence[str]

    name: ClassVar[str] = "by_classes"
    place: ClassVar[str] = "results"

    @property
    def panels(self) -> list[tuple[str, float]]:
        """Return the learner and epsilon of each panel."""
        scores = self.scores[self.scores["method"] == LABELS.name]
        pairs = scores[["learner", "epsilon"]].drop_duplicates()
        return [(str(a), float(b)) for a, b in pairs.to_numpy()][:MOST_PANELS]

    @property
    def alt(self) -> str:
        """Return the description of the figure."""
        return (
            "Accuracy against the number of classes, a panel for each learner and"
            f" epsilon, a line for each of {', '.join(self.encoders)}, and what they"
            " are held against."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a panel for each learner and epsilon."""
        figure, axes = style.make_panels(len(self.panels), narrow=narrow, height=3.2)
        levels = sorted(self.scores["k"].unique())
        names = list(self.scores["series"].drop_duplicates())
        inks = {name: style.line_style(it) for name, it in self._looks(names).items()}
        for ax, (learner, epsilon) in zip(axes, self.panels, strict=True):
            panel_scores = self.scores[self.scores["learner"] == learner]
            panel_scores = panel_scores[
                panel_scores["epsilon"].isna() | (panel_scores["epsilon"] == epsilon)
            ]
            for name, ink in inks.items():
                _accuracy_line(
                    ax, panel_scores[panel_scores["series"] == name], levels, ink
                )
            figures.draw_level_axis(ax, levels, K)
            ax.set_title(f"{learner}, epsilon {epsilon:g}")
            ax.grid(axis="y")
        figures.draw_left_label(axes, narrow, "accuracy (%)")
        handles = [
            Line2D([], [], label=_series_label(n), **ink) for n, ink in inks.items()
        ]
        figures.draw_legend(figure, handles, 3 if narrow else 6)
        return figure

    def _looks(self, names: Sequence[str]) -> dict[str, Look]:
        return series_looks(names, self.encoders)


def _series_label(name: str) -> str:
    method = methods_by_name().get(name)
    return method.label if method else name


def _accuracy_line(
    ax: Axes, rows: pd.DataFrame, levels: list[int], ink: dict[str, Any]
) -> None:
    mean = rows.groupby("k", as_index=False)[["value", "se"]].mean()
    at = [levels.index(k) for k in mean["k"]]
    ax.errorbar(at, 100 * mean["value"], yerr=200 * mean["se"], elinewidth=0.9, **ink)


def gather(views: Sequence[RunView], _: pd.DataFrame) -> ByClasses | None:
    """Return the accuracies where there are several numbers of classes."""
    if not views[0].holds("report"):
        return None
    scores = mean_scores(views)
    scores = scores[scores["metric"] == ACCURACY.name]
    if scores["k"].nunique() < 2:
        return None
    series = scores.loc[scores["method"] == LABELS.name, "series"].drop_duplicates()
    return ByClasses(scores, [str(name) for name in series])
