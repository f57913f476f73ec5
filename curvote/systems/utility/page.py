"""Page sections of utility: the recommendation, and the best deployments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pandas as pd

from curvote.chain.measure import SCORES
from curvote.messages.measures import AGREEMENT
from curvote.pipeline.run.results import RunView
from curvote.report.data import Section, format_percent
from curvote.systems.labels.metrics import ACCURACY, BALANCED
from curvote.systems.utility.measures import BOUND, FLOORS, METHODS, RECOMMENDED, WORST
from curvote.systems.utility.measures import RECOMMENDED_TABLE as CHOSEN


@dataclass(frozen=True)
class RecommendationRow:
    """Texts of one recommendation."""

    learner: str
    epsilon: str
    words: str
    agreement: str
    floor: str
    reason: str


@dataclass(frozen=True, eq=False)
class RecommendationSection(Section):
    """Recommendations (``rows``) and the lines on a target (``least``)."""

    rows: Sequence[RecommendationRow]
    least: Sequence[str]

    name: ClassVar[str] = "chosen"
    place: ClassVar[str] = "numbers"


def gather_recommendations(
    views: Sequence[RunView], _: pd.DataFrame
) -> RecommendationSection | None:
    """Return the recommendations of every cell that has one."""
    cells = [view for view in views if view.holds("report", CHOSEN.name)]
    if not cells:
        return None
    return RecommendationSection(
        list(map(_recommendation_row, cells)), list(_target_lines(cells))
    )


def _recommendation_row(view: RunView) -> RecommendationRow:
    """Return the texts of one cell's recommendation."""
    chosen = view.columns("report", CHOSEN.name)
    return RecommendationRow(
        str(view.cell["learner"]),
        f"{view.cell['epsilon']:g}",
        str(chosen["words"][0]) or "nothing",
        format_percent(_method_agreement(view, "report", RECOMMENDED.name)),
        format_percent(max(_floor_agreements(view))),
        str(chosen["reason"][0]),
    )


def _floor_agreements(view: RunView) -> Iterator[float]:
    """Yield the agreement of each floor."""
    for floor in FLOORS:
        agreement = _method_agreement(view, "surface", floor.name)
        if agreement is not None:
            yield agreement


def _method_agreement(view: RunView, stage: str, method: str) -> float | None:
    """Return the agreement of one method, None where there is none."""
    scores = view.read(stage, SCORES.name)
    mask = (scores["replicate"] == 0) & (scores["metric"] == AGREEMENT.name)
    mask &= (scores["method"] == method) & scores["group"].isna()
    values = scores.loc[mask, "value"]
    return None if values.empty else float(values.iloc[0])


def _target_lines(views: Sequence[RunView]) -> Iterator[str]:
    """Yield the least total epsilon at which each model reaches the target."""
    target = views[0].setting("deployments")["target"]
    if target is None:
        return
    for learner in dict.fromkeys(view.cell["learner"] for view in views):
        cells = [view for view in views if view.cell["learner"] == learner]
        yield f"{learner}: {_describe_reached(cells, target)}"


def _describe_reached(views: Sequence[RunView], target: float) -> str:
    """Return the sentence on the least total epsilon of a model."""
    for view in sorted(views, key=lambda view: view.cell["epsilon"]):
        words = str(view.columns("report", CHOSEN.name)["reaches"][0])
        if words:
            return (
                f"agreement {100 * target:g} % needs a total epsilon of"
                f" {view.cell['epsilon']:g} among those looked at: {words}."
            )
    return f"no total epsilon that was looked at reaches {100 * target:g} %."


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


def gather_deployments(
    views: Sequence[RunView], _: pd.DataFrame
) -> DeploymentsSection | None:
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
