"""Reliability: how often a model is right that says it is so sure."""

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
from curvote.reporting.sections.labels.shown import first_setting, look
from curvote.run.results import RunView

MOST_PANELS = 6


@dataclass(frozen=True, eq=False)
class Calibrated(Section):
    """``bins``: series, learner, epsilon, n, confidence, accuracy of each bin."""

    bins: pd.DataFrame

    name: ClassVar[str] = "calibrated"
    place: ClassVar[str] = "results"

    @property
    def panels(self) -> list[str]:
        """The encoders and learners that have a panel each."""
        return list(self.bins["panel"].drop_duplicates())[:MOST_PANELS]

    @property
    def errors(self) -> str:
        """The calibration error of each line in words."""
        told = [
            f"{panel} {', '.join(_error(rows) for _, rows in part.groupby('epsilon'))}"
            for panel, part in self.bins.groupby("panel", sort=False)
        ]
        return "; ".join(told[:MOST_PANELS])

    @property
    def alt(self) -> str:
        """What the figure shows."""
        return (
            "Frequency of right answers against how sure the model was, in 15 bins, a"
            " panel for each encoder and learner, a line for each epsilon."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a panel for each encoder and learner, a line for each epsilon."""
        figure, axes = style.panels(len(self.panels), narrow=narrow, height=3.2)
        levels = sorted(self.bins["epsilon"].unique())
        for ax, panel in zip(axes, self.panels, strict=True):
            ax.plot([0, 100], [0, 100], color=style.MUTED, lw=0.8)
            for place, epsilon in enumerate(levels):
                mine = self.bins["panel"] == panel
                _line(ax, self.bins[mine & (self.bins["epsilon"] == epsilon)], place)
            ax.set_title(panel)
            ax.set_xlabel("how sure (%)")
            ax.grid()
        figures.left_label(axes, narrow, "how often right (%)")
        handles = [
            Line2D([], [], label=f"epsilon {epsilon:g}", **style.inks(look(place)))
            for place, epsilon in enumerate(levels)
        ]
        figures.legend(figure, handles, 3 if narrow else 6)
        return figure


def _error(rows: pd.DataFrame) -> str:
    gap = np.abs(rows["confidence"] - rows["accuracy"])
    return f"{100 * float((rows['n'] * gap).sum() / max(1, rows['n'].sum())):.1f}"


def _line(ax: Axes, rows: pd.DataFrame, place: int) -> None:
    seen = rows[rows["n"] > 0]
    ink = style.inks(look(place))
    ax.plot(100 * seen["confidence"], 100 * seen["accuracy"], **ink)


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Calibrated | None:
    """Return the bins of each model of the first setting, all repetitions together."""
    own = [view for view in first_setting(views) if view.holds("report")]
    if not own:
        return None
    return Calibrated(pd.concat(map(_bins, own), ignore_index=True))


def _bins(view: RunView) -> pd.DataFrame:
    told = view.read("report", RELIABILITY.name)
    told = told.assign(
        confidence=told["confidence"] * told["n"], accuracy=told["accuracy"] * told["n"]
    )
    summed = told.groupby("low", as_index=False)[["n", "confidence", "accuracy"]].sum()
    n = summed["n"].clip(lower=1)
    means = {name: summed[name] / n for name in ("confidence", "accuracy")}
    panel = f"{view.cell['protocol']}, {view.cell['learner']}"
    return summed.assign(**means, panel=panel, epsilon=view.cell["epsilon"])
