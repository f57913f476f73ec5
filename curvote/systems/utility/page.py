"""Page sections of utility: the recommendation, and the best deployments."""

from collections import namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pandas as pd

from curvote.chain.measure import SCORES
from curvote.messages.measures import AGREEMENT
from curvote.pipeline.run.results import RunView
from curvote.report.data import Section, format_percent
from curvote.systems.labels.metrics import ACCURACY, BALANCED
from curvote.systems.utility import system

# Texts of one recommendation, and of one deployment with its numbers in percent.
RecommendationRow = namedtuple(
    "RecommendationRow", "learner epsilon words agreement floor reason"
)
DeploymentRow = namedtuple("DeploymentRow", "learner epsilon words numbers")


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
    cells = [
        view for view in views if view.holds("report", system.RECOMMENDED_TABLE.name)
    ]
    if not cells:
        return None
    rows = []
    for view in cells:
        chosen = view.columns("report", system.RECOMMENDED_TABLE.name)
        floors = [
            _method_agreement(view, "surface", floor.name) for floor in system.FLOORS
        ]
        row = RecommendationRow(
            str(view.cell["learner"]),
            f"{view.cell['epsilon']:g}",
            str(chosen["words"][0]) or "nothing",
            format_percent(_method_agreement(view, "report", system.RECOMMENDED.name)),
            format_percent(max(floor for floor in floors if floor is not None)),
            str(chosen["reason"][0]),
        )
        rows.append(row)
    return RecommendationSection(rows, list(_target_lines(cells)))


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
        for view in sorted(cells, key=lambda view: view.cell["epsilon"]):
            words = str(
                view.columns("report", system.RECOMMENDED_TABLE.name)["reaches"][0]
            )
            if words:
                yield (
                    f"{learner}: agreement {100 * target:g} % needs a total epsilon of"
                    f" {view.cell['epsilon']:g} among those looked at: {words}."
                )
                break
        else:
            reach = f"no total epsilon that was looked at reaches {100 * target:g} %."
            yield f"{learner}: {reach}"


DISPLAYED_ROWS: Final = 5
_DISPLAYED_METRICS: Final = (AGREEMENT, system.WORST, system.BOUND, ACCURACY, BALANCED)


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
    rows, metrics = [], [metric.name for metric in _DISPLAYED_METRICS]
    named = {method.name for method in system.METHODS}
    for view in cells:
        scores = view.read("report", SCORES.name)
        unnamed = scores[(scores["replicate"] == 0) & scores["group"].isna()]
        unnamed = unnamed[~unnamed["method"].isin(named)]
        wide = unnamed.pivot_table(index="method", columns="metric", values="value")
        if wide.empty:
            continue
        best = wide.sort_values(AGREEMENT.name, ascending=False).head(DISPLAYED_ROWS)
        for words, values in best.iterrows():
            numbers = [format_percent(values.get(metric)) for metric in metrics]
            learner, epsilon = str(view.cell["learner"]), f"{view.cell['epsilon']:g}"
            rows.append(DeploymentRow(learner, epsilon, str(words), numbers))
    names = [metric.replace("_", " ") for metric in metrics]
    return DeploymentsSection(rows, names) if rows else None
