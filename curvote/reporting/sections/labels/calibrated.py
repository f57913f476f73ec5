"""Reliability figure: accuracy against a model's stated confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.protocols.labels.tables import RELIABILITY
from curvote.reporting import figures, style
from curvote.reporting.section import Section
from curvote.reporting.sections.labels.shown import encoder_look, first_setting_views
from curvote.run.results import RunView

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
                _reliability_line(
                    ax, self.bins[in_panel & (self.bins["epsilon"] == epsilon)], place
                )
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


def _reliability_line(ax: Axes, rows: pd.DataFrame, place: int) -> None:
    occupied = rows[rows["n"] > 0]
    ink = style.line_style(encoder_look(place))
    ax.plot(100 * occupied["confidence"], 100 * occupied["accuracy"], **ink)


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Reliability | None:
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
