"""Page sections of utility: the recommendation, and the best deployments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.chain.measure import SCORES
from curvote.protocols.measures import AGREEMENT
from curvote.protocols.utility.methods import FLOORS, RECOMMENDED
from curvote.protocols.utility.tables import RECOMMENDED_TABLE as CHOSEN
from curvote.reporting.data import format_percent
from curvote.reporting.section import Section
from curvote.run.results import RunView


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


def gather(views: Sequence[RunView], _: pd.DataFrame) -> RecommendationSection | None:
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
