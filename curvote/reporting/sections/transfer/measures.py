"""Accuracy, F1 and balanced accuracy of each form of release, against epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvote.chain.axis import Value
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import MISCLASSIFICATION
from curvote.protocols.transfer.clean.methods import METHODS as CLEAN
from curvote.protocols.transfer.methods import BALANCED, F1
from curvote.reporting import figures, style
from curvote.reporting.data import learners, levels
from curvote.reporting.methods import method_of
from curvote.reporting.section import Section
from curvote.reporting.sections.transfer.shown import called, compares, look, of_first
from curvote.run.results import RunView

PANELS = {MISCLASSIFICATION: "accuracy", F1: "F1", BALANCED: "balanced accuracy"}
_BESIDE = (MAJORITY.name, *(method.name for method in CLEAN))


@dataclass(frozen=True, eq=False)
class Measures(Section):
    """``lines`` are the scores of each setting's main method, ``beside`` of others.

    Both have series, level, metric, value and se; the value of an error is 1 - error.
    """

    lines: pd.DataFrame
    beside: pd.DataFrame

    name: ClassVar[str] = "measures"
    place: ClassVar[str] = "results"

    @property
    def series(self) -> list[str]:
        """The settings that are drawn, in their order."""
        return [str(name) for name in self.lines["series"].drop_duplicates()]

    @property
    def alt(self) -> str:
        """What the figure shows."""
        return (
            "Three panels against epsilon: accuracy, F1 and balanced accuracy, a line"
            f" for each of {', '.join(self.series)}; the majority and what there is"
            " without privacy beside them."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a panel for each measure, one line for each setting."""
        figure, axes = style.panels(
            len(PANELS), narrow=narrow, height=3.6, share_y=False
        )
        every = levels(self.lines)
        for ax, (metric, title) in zip(axes, PANELS.items(), strict=True):
            own = self.lines[self.lines["metric"] == metric.name]
            for place, series in enumerate(self.series):
                _line(ax, own[own["series"] == series], every, place)
            for method in _BESIDE:
                mine = self.beside["metric"] == metric.name
                _held(ax, self.beside[mine & (self.beside["series"] == method)], every)
            figures.level_axis(ax, every)
            ax.set_title(title)
            ax.grid(axis="y")
        figures.left_label(axes, narrow, "percent")
        figures.legend(figure, self._handles(), 2 if narrow else 4)
        return figure

    def _handles(self) -> list[Line2D]:
        told = [(name, look(place)) for place, name in enumerate(self.series)]
        there = [name for name in _BESIDE if name in set(self.beside["series"])]
        told += [(method_of(name).label, method_of(name).look) for name in there]
        return [Line2D([], [], label=name, **style.inks(own)) for name, own in told]


def _line(ax: Axes, rows: pd.DataFrame, every: list[Value], place: int) -> None:
    at = np.array([every.index(level) for level in rows["level"]])
    ax.errorbar(
        at + 0.04 * (place - 1.5),
        100 * rows["value"],
        yerr=200 * rows["se"].fillna(0),
        elinewidth=0.9,
        zorder=look(place).above,
        **style.inks(look(place)),
    )


def _held(ax: Axes, rows: pd.DataFrame, every: list[Value]) -> None:
    """Draw what others are held against: a level line where it has no epsilon."""
    placed = rows[rows["level"].isin(every)]
    if len(placed):
        at = [every.index(level) for level in placed["level"]]
        own = style.inks(method_of(placed["series"].iloc[0]).look)
        ax.plot(at, 100 * placed["value"], zorder=2, **own)
    for _, row in rows[~rows["level"].isin(every)].iterrows():
        figures.level_line(ax, row, 100)


def gather(views: Sequence[RunView], scores: pd.DataFrame) -> Measures | None:
    """Return the scores of the main methods, and of what they are held against."""
    own = [view for view in of_first(views) if not compares(view)]
    if scores.empty or not own:
        return None
    lines = pd.concat([_of(view, scores) for view in own], ignore_index=True)
    held = scores[scores["method"].isin(_BESIDE)].copy()
    held["series"] = held["method"]
    every = ("series", "learner", "level", "metric")
    beside = held.drop_duplicates([*every[:1], *every[2:]])
    return Measures(_right(lines), _right(beside))


def _of(view: RunView, scores: pd.DataFrame) -> pd.DataFrame:
    mine = scores["protocol"] == view.cell["protocol"]
    mine &= scores["level"] == view.cell["epsilon"]
    mine &= scores["method"] == view.setting("methods")[0]
    found = scores[mine]
    if view.cell["setting"] in learners(scores):
        found = found[found["learner"] == view.cell["setting"]]
    return pd.DataFrame(found.assign(series=called(view)))


def _right(scores: pd.DataFrame) -> pd.DataFrame:
    """Return accuracies for errors."""
    error = scores["metric"] == MISCLASSIFICATION.name
    value = scores["value"].astype(float)
    return scores.assign(
        value=value.mask(error, 1 - value), se=scores["se"].astype(float)
    )
