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
from curvote.reporting.data import format_percent
from curvote.reporting.section import Section
from curvote.run.results import RunView

DISPLAYED_ROWS: Final = 5
_DISPLAYED_METRICS: Final = (AGREEMENT, WORST, BOUND, ACCURACY, BALANCED)


@dataclass(frozen=True)
class DeploymentRow:
    """Texts of one deployment, numbers in percent."""

    learner: str
    epsilon: str
    words: str
    numbers: Sequence[str]


@dataclass(frozen=True, eq=False)
class DeploymentsSection(Section):
    """Best deployments of each model and epsilon."""

    rows: Sequence[DeploymentRow]
    metrics: Sequence[str]

    name: ClassVar[str] = "deployed"
    place: ClassVar[str] = "results"


def gather(views: Sequence[RunView], _: pd.DataFrame) -> DeploymentsSection | None:
    """Return the best deployments of every cell that has any."""
    cells = [view for view in views if view.holds("agree") or view.holds("report")]
    rows = [row for view in cells for row in _deployment_rows(view)]
    names = [metric.name.replace("_", " ") for metric in _DISPLAYED_METRICS]
    return DeploymentsSection(rows, names) if rows else None


def _deployment_rows(view: RunView) -> Iterator[DeploymentRow]:
    """Yield the rows of a cell's best deployments."""
    scores = view.read("report", SCORES.name)
    named = {method.name for method in METHODS}
    unnamed = scores[(scores["replicate"] == 0) & scores["group"].isna()]
    unnamed = unnamed[~unnamed["method"].isin(named)]
    wide = unnamed.pivot_table(index="method", columns="metric", values="value")
    if wide.empty:
        return
    best = wide.sort_values(AGREEMENT.name, ascending=False).head(DISPLAYED_ROWS)
    for words, values in best.iterrows():
        numbers = [
            format_percent(values.get(metric.name)) for metric in _DISPLAYED_METRICS
        ]
        yield DeploymentRow(
            str(view.cell["learner"]), f"{view.cell['epsilon']:g}", str(words), numbers
        )
