"""Figures of a page of private labels: accuracy by classes, and reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.axis import Axis
from curvote.pipeline.run.results import RunView
from curvote.report import figures, style
from curvote.report.data import methods_by_name
from curvote.report.section import Section
from curvote.systems.labels.metrics import ACCURACY, LABELS
from curvote.systems.labels.page.tables import (
    encoder_look,
    first_setting_views,
    mean_scores,
    series_looks,
)
from curvote.systems.labels.system import RELIABILITY

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
        inks = {
            name: style.line_style(it)
            for name, it in series_looks(names, self.encoders).items()
        }
        for ax, (learner, epsilon) in zip(axes, self.panels, strict=True):
            panel_scores = self.scores[self.scores["learner"] == learner]
            panel_scores = panel_scores[
                panel_scores["epsilon"].isna() | (panel_scores["epsilon"] == epsilon)
            ]
            for name, ink in inks.items():
                rows = panel_scores[panel_scores["series"] == name]
                mean = rows.groupby("k", as_index=False)[["value", "se"]].mean()
                at = [levels.index(k) for k in mean["k"]]
                ax.errorbar(
                    at,
                    100 * mean["value"],
                    yerr=200 * mean["se"],
                    elinewidth=0.9,
                    **ink,
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


def _series_label(name: str) -> str:
    method = methods_by_name().get(name)
    return method.label if method else name


def gather_by_classes(views: Sequence[RunView], _: pd.DataFrame) -> ByClasses | None:
    """Return the accuracies where there are several numbers of classes."""
    if not views[0].holds("report"):
        return None
    scores = mean_scores(views)
    scores = scores[scores["metric"] == ACCURACY.name]
    if scores["k"].nunique() < 2:
        return None
    series = scores.loc[scores["method"] == LABELS.name, "series"].drop_duplicates()
    return ByClasses(scores, [str(name) for name in series])


MOST_RELIABILITY_PANELS = 6


@dataclass(frozen=True, eq=False)
class Reliability(Section):
    """``bins``: series, learner, epsilon, n, confidence, accuracy of each bin."""

    bins: pd.DataFrame

    name: ClassVar[str] = "calibrated"
    place: ClassVar[str] = "results"

    @property
    def panels(self) -> list[str]:
        """Return the encoders and learners that have a panel each."""
        return list(self.bins["panel"].drop_duplicates())[:MOST_RELIABILITY_PANELS]

    @property
    def errors(self) -> str:
        """Return the calibration error of each line as text."""
        lines = []
        for panel, part in self.bins.groupby("panel", sort=False):
            errors = [_calibration_error(rows) for _, rows in part.groupby("epsilon")]
            lines.append(f"{panel} {', '.join(errors)}")
        return "; ".join(lines[:MOST_RELIABILITY_PANELS])

    @property
    def alt(self) -> str:
        """Return the description of the figure."""
        return (
            "Frequency of right answers against how sure the model was, in 15 bins, a"
            " panel for each encoder and learner, a line for each epsilon."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a panel for each encoder and learner, a line for each epsilon."""
        figure, axes = style.make_panels(len(self.panels), narrow=narrow, height=3.2)
        levels = sorted(self.bins["epsilon"].unique())
        for ax, panel in zip(axes, self.panels, strict=True):
            ax.plot([0, 100], [0, 100], color=style.MUTED, lw=0.8)
            for place, epsilon in enumerate(levels):
                in_panel = self.bins["panel"] == panel
                rows = self.bins[in_panel & (self.bins["epsilon"] == epsilon)]
                occupied = rows[rows["n"] > 0]
                ink = style.line_style(encoder_look(place))
                ax.plot(100 * occupied["confidence"], 100 * occupied["accuracy"], **ink)
            ax.set_title(panel)
            ax.set_xlabel("how sure (%)")
            ax.grid()
        figures.draw_left_label(axes, narrow, "how often right (%)")
        handles = [
            Line2D(
                [],
                [],
                label=f"epsilon {epsilon:g}",
                **style.line_style(encoder_look(place)),
            )
            for place, epsilon in enumerate(levels)
        ]
        figures.draw_legend(figure, handles, 3 if narrow else 6)
        return figure


def _calibration_error(rows: pd.DataFrame) -> str:
    gap = np.abs(rows["confidence"] - rows["accuracy"])
    return f"{100 * float((rows['n'] * gap).sum() / max(1, rows['n'].sum())):.1f}"


def gather_calibrated(views: Sequence[RunView], _: pd.DataFrame) -> Reliability | None:
    """Return the bins of each model of the first setting, all repetitions together."""
    study_views = [view for view in first_setting_views(views) if view.holds("report")]
    if not study_views:
        return None
    return Reliability(
        pd.concat(map(_reliability_bins, study_views), ignore_index=True)
    )


def _reliability_bins(view: RunView) -> pd.DataFrame:
    table = view.read("report", RELIABILITY.name)
    table = table.assign(
        confidence=table["confidence"] * table["n"],
        accuracy=table["accuracy"] * table["n"],
    )
    summed = table.groupby("low", as_index=False)[["n", "confidence", "accuracy"]].sum()
    n = summed["n"].clip(lower=1)
    means = {name: summed[name] / n for name in ("confidence", "accuracy")}
    panel = f"{view.cell['protocol']}, {view.cell['learner']}"
    return summed.assign(**means, panel=panel, epsilon=view.cell["epsilon"])
