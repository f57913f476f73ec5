"""Page section of cutoffs: how often no classifier passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.pipeline.run.results import RunView
from curvote.report.data import (
    Section,
    find_method,
    format_level,
    format_percent,
    learners,
    series_names,
    sorted_levels,
)
from curvote.report.data import add_series as named


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
        return [
            (f"{find_method(series).label}, {learner}", self._level_percents(group))
            for series in series_names(scores)
            for learner in learners(scores)
            for group in [
                scores[(scores["series"] == series) & (scores["learner"] == learner)]
            ]
            if group["share"].gt(0).any()
        ]

    def _level_percents(self, group: pd.DataFrame) -> list[str]:
        share = group.set_index("level")["share"]
        return [
            format_percent(share.get(value), 0) for value in sorted_levels(self.scores)
        ]


def gather_none_passed(
    views: Sequence[RunView], scores: pd.DataFrame
) -> NonePassed | None:
    """Return how often no classifier passed, at the first cutoff."""
    if scores.empty:
        return None
    return NonePassed(views[0].setting("aggregate.cutoff"), scores)
