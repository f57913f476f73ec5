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
from curvote.reporting.data import learners, sorted_levels
from curvote.reporting.methods import find_method
from curvote.reporting.section import Section
from curvote.reporting.sections.transfer.shown import (
    first_grid,
    is_reference,
    look_at,
    protocol_name,
)
from curvote.run.results import RunView

PANELS = {MISCLASSIFICATION: "accuracy", F1: "F1", BALANCED: "balanced accuracy"}
_REFERENCE_METHODS = (MAJORITY.name, *(method.name for method in CLEAN))


@dataclass(frozen=True, eq=False)
class ScoresSection(Section):
    """Scores of each setting's main method (``lines``) and references (``beside``).

    Both have series, level, metric, value and se; the value of an error is 1 - error.
    """

    lines: pd.DataFrame
    beside: pd.DataFrame

    name: ClassVar[str] = "measures"
    place: ClassVar[str] = "results"

    @property
    def series(self) -> list[str]:
        """Names of the settings that are drawn, in their order."""
        return [str(name) for name in self.lines["series"].drop_duplicates()]

    @property
    def alt(self) -> str:
        """Description of the figure for readers who cannot see it."""
        return (
            "Three panels against epsilon: accuracy, F1 and balanced accuracy, a line"
            f" for each of {', '.join(self.series)}; the majority and what there is"
            " without privacy beside them."
        )

    def draw(self, narrow: bool) -> Figure:
        """Draw a panel for each measure, one line for each setting."""
        figure, axes = style.make_panels(
            len(PANELS), narrow=narrow, height=3.6, share_y=False
        )
        all_levels = sorted_levels(self.lines)
        for ax, (metric, title) in zip(axes, PANELS.items(), strict=True):
            metric_rows = self.lines[self.lines["metric"] == metric.name]
            for place, series in enumerate(self.series):
                _draw_scores(
                    ax, metric_rows[metric_rows["series"] == series], all_levels, place
                )
            for method in _REFERENCE_METHODS:
                metric_mask = self.beside["metric"] == metric.name
                _draw_reference(
                    ax,
                    self.beside[metric_mask & (self.beside["series"] == method)],
                    all_levels,
                )
            figures.draw_level_axis(ax, all_levels)
            ax.set_title(title)
            ax.grid(axis="y")
        figures.draw_left_label(axes, narrow, "percent")
        figures.draw_legend(figure, self._handles(), 2 if narrow else 4)
        return figure

    def _handles(self) -> list[Line2D]:
        """Return the entries of the legend."""
        entries = [(name, look_at(place)) for place, name in enumerate(self.series)]
        there = [
            name for name in _REFERENCE_METHODS if name in set(self.beside["series"])
        ]
        entries += [(find_method(name).label, find_method(name).look) for name in there]
        return [
            Line2D([], [], label=name, **style.line_style(look_of_line))
            for name, look_of_line in entries
        ]


def _draw_scores(ax: Axes, rows: pd.DataFrame, every: list[Value], place: int) -> None:
    """Draw one setting's scores with error bars."""
    at = np.array([every.index(level) for level in rows["level"]])
    ax.errorbar(
        at + 0.04 * (place - 1.5),
        100 * rows["value"],
        yerr=200 * rows["se"].fillna(0),
        elinewidth=0.9,
        zorder=look_at(place).above,
        **style.line_style(look_at(place)),
    )


def _draw_reference(ax: Axes, rows: pd.DataFrame, every: list[Value]) -> None:
    """Draw a reference: a level line where it has no epsilon."""
    placed = rows[rows["level"].isin(every)]
    if len(placed):
        at = [every.index(level) for level in placed["level"]]
        ink = style.line_style(find_method(placed["series"].iloc[0]).look)
        ax.plot(at, 100 * placed["value"], zorder=2, **ink)
    for _, row in rows[~rows["level"].isin(every)].iterrows():
        figures.draw_level_line(ax, row, 100)


def gather(views: Sequence[RunView], scores: pd.DataFrame) -> ScoresSection | None:
    """Return the scores of the main methods and the references."""
    cells = [view for view in first_grid(views) if not is_reference(view)]
    if scores.empty or not cells:
        return None
    lines = pd.concat([_cell_scores(view, scores) for view in cells], ignore_index=True)
    reference_scores = scores[scores["method"].isin(_REFERENCE_METHODS)].copy()
    reference_scores["series"] = reference_scores["method"]
    keys = ("series", "learner", "level", "metric")
    beside = reference_scores.drop_duplicates([*keys[:1], *keys[2:]])
    return ScoresSection(_to_accuracy(lines), _to_accuracy(beside))


def _cell_scores(view: RunView, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a cell's rows of the scores."""
    mask = scores["protocol"] == view.cell["protocol"]
    mask &= scores["level"] == view.cell["epsilon"]
    mask &= scores["method"] == view.setting("methods")[0]
    rows = scores[mask]
    if view.cell["setting"] in learners(scores):
        rows = rows[rows["learner"] == view.cell["setting"]]
    return pd.DataFrame(rows.assign(series=protocol_name(view)))


def _to_accuracy(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores with accuracies in place of errors."""
    error = scores["metric"] == MISCLASSIFICATION.name
    value = scores["value"].astype(float)
    return scores.assign(
        value=value.mask(error, 1 - value), se=scores["se"].astype(float)
    )
