"""How often no classifier passed the cutoff: for systems that average those that do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.reporting.data import learners, level, levels, percent, series_names
from curvote.reporting.data import with_series as named
from curvote.reporting.methods import method_of
from curvote.reporting.section import Section
from curvote.run.results import RunView


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
        """The levels of the table."""
        return [level(each) for each in levels(self.scores)]

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """(method and learner, percent at each level), where it happened at all."""
        scores = named(self.scores)
        scores = scores.assign(share=pd.to_numeric(scores["none_passed"]).fillna(0))
        return [
            (f"{method_of(series).label}, {learner}", self._cells(mine))
            for series in series_names(scores)
            for learner in learners(scores)
            for mine in [
                scores[(scores["series"] == series) & (scores["learner"] == learner)]
            ]
            if mine["share"].gt(0).any()
        ]

    def _cells(self, mine: pd.DataFrame) -> list[str]:
        share = mine.set_index("level")["share"]
        return [percent(share.get(each), 0) for each in levels(self.scores)]


def gather(views: Sequence[RunView], scores: pd.DataFrame) -> NonePassed | None:
    """Return how often none passed the cutoff of the first of these cells."""
    if scores.empty:
        return None
    return NonePassed(views[0].setting("aggregate.cutoff"), scores)
