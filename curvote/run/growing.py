"""Reuse of stored replicates when a study has another number of them.

The tables are those of a study from nothing, bit for bit, under the same key. Fewer
replicates are the first of what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from curvote.chain.stage import Place
from curvote.run import records
from curvote.run.config.file import ConfiguredPipeline
from curvote.run.plan.growth import (
    REPLICATES_KEY,
    Sibling,
    has_replicates,
    sibling_steps,
)
from curvote.run.plan.step import EarlierArtifact, Step
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, artifact, checked_artifact
from curvote.run.store.merging import Batch
from curvote.run.store.taking import first_replicates


@dataclass(frozen=True)
class ReusedReplicates:
    """The first ``kept`` replicates of an artifact, which a step reuses."""

    source: Artifact | None
    count: int = 0

    @classmethod
    def for_step(cls, project: Project, step: Step) -> ReusedReplicates:
        """Return what a step reuses; UserError: it was altered since the plan."""
        if step.earlier is None:
            return cls(None)
        source = checked_artifact(project, step.stage.name, step.earlier.key)
        return cls(source, step.earlier.reused_count)

    def new_places(self, places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Return the places that have to be computed."""
        if self.source is None:
            return places
        return tuple(place for place in places if place[0] >= self.count)

    def reused_batches(self, table: str) -> Iterator[Batch]:
        """Yield place and rows of a table that are reused, in order."""
        if self.source is not None:
            yield from first_replicates(self.source, table, self.count)


def stage_parameters(step: Step) -> dict[str, Any]:
    """Return a stage's parameters, without the number of replicates.

    One that is repeated over replicates is not told how many there are: what it makes
    of one must hold for any number of them.
    """
    if not has_replicates(step):
        return step.params
    return {
        name: value for name, value in step.params.items() if name != REPLICATES_KEY
    }


def reuse_replicates(
    project: Project, configured: ConfiguredPipeline, steps: Sequence[Step]
) -> list[Step]:
    """Return steps; missing ones reuse replicates of runs with another number.

    Nothing is where a step is forced, nor in production, which has one replicate.
    """
    missing = {step.id for step in steps if _is_missing(project, step)}
    if not missing:
        return list(steps)
    replicates = configured.pipeline.replicates
    counts = {*records.replicate_counts(project, configured.name)} - {replicates}
    sibling_plans = [
        sibling_steps(steps, count)
        for count in sorted(counts, key=_reuse_order(replicates))
    ]
    return [
        _with_earlier(
            project,
            step,
            replicates,
            [sibling_plan[step.id] for sibling_plan in sibling_plans],
        )
        if step.id in missing
        else step
        for step in steps
    ]


def _is_missing(project: Project, step: Step) -> bool:
    reusable = step.action == "run" and not step.forced and has_replicates(step)
    if not reusable:
        return False
    there = artifact(project, step.stage.name, step.key)
    return there.problem(content=False) == "missing"


def _reuse_order(replicates: int) -> Callable[[int], tuple[bool, int]]:
    """Return a sort key of numbers of replicates: the best to reuse is first.

    That is the smallest one that holds all, or else the largest.
    """
    return lambda count: (count < replicates, count if count > replicates else -count)


def _with_earlier(
    project: Project, step: Step, replicates: int, candidates: Iterable[Sibling]
) -> Step:
    """Return a step with the first sibling whose artifact exists, if any."""
    for sibling in candidates:
        there = artifact(project, step.stage.name, sibling.key)
        if sibling.same and there.problem(content=True) is None:
            earlier = EarlierArtifact(
                sibling.key, sibling.count, min(sibling.count, replicates)
            )
            return replace(
                step,
                earlier=earlier,
                reason=_reuse_reason(replicates, earlier),
                also=(),
            )
    return step


def _reuse_reason(replicates: int, earlier: EarlierArtifact) -> str:
    if replicates == earlier.reused_count:
        return f"the first {replicates} of {earlier.count} replicates that are there"
    there = "1 is there" if earlier.count == 1 else f"{earlier.count} are there"
    return f"{replicates - earlier.reused_count} of {replicates} replicates: {there}"
