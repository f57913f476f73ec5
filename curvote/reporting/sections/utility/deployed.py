"""The deployments that agree most often, with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pandas as pd

from curvote.chain.measure import SCORES
from curvote.protocols.labels.methods import ACCURACY, BALANCED
from curvote.protocols.measures import AGREEMENT
from curvote.protocols.utility.methods import BOUND, METHODS, WORST
from curvote.reporting.data import percent
from curvote.reporting.section import Section
from curvote.run.results import RunView

SHOWN: Final = 5
_NUMBERS: Final = (AGREEMENT, WORST, BOUND, ACCURACY, BALANCED)


@dataclass(frozen=True)
class Row:
    """A deployment in words and its numbers in percent."""

    learner: str
    epsilon: str
    words: str
    numbers: Sequence[str]


@dataclass(frozen=True, eq=False)
class Deployed(Section):
    """``rows`` of the first repetition, the best of each model and epsilon."""

    rows: Sequence[Row]
    metrics: Sequence[str]

    name: ClassVar[str] = "deployed"
    place: ClassVar[str] = "results"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Deployed | None:
    """Return the best deployments of every cell that has any."""
    own = [view for view in views if view.holds("agree") or view.holds("report")]
    rows = [row for view in own for row in _rows(view)]
    names = [metric.name.replace("_", " ") for metric in _NUMBERS]
    return Deployed(rows, names) if rows else None


def _rows(view: RunView) -> Iterator[Row]:
    told = view.read("report", SCORES.name)
    named = {method.name for method in METHODS}
    mine = told[(told["replicate"] == 0) & told["group"].isna()]
    mine = mine[~mine["method"].isin(named)]
    wide = mine.pivot_table(index="method", columns="metric", values="value")
    if wide.empty:
        return
    best = wide.sort_values(AGREEMENT.name, ascending=False).head(SHOWN)
    for words, values in best.iterrows():
        numbers = [percent(values.get(metric.name)) for metric in _NUMBERS]
        yield Row(
            str(view.cell["learner"]), f"{view.cell['epsilon']:g}", str(words), numbers
        )
