"""More replicates of a study: those that are stored are taken over, not drawn again.

The tables are those of a study from nothing, bit for bit, under the same key. Fewer
replicates are the first of what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from curvote.chain.stage import Place
from curvote.run import records
from curvote.run.config.file import Configured
from curvote.run.plan.growth import COUNT, Sibling, grows, siblings
from curvote.run.plan.step import Earlier, Step
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, artifact, sound
from curvote.run.store.merging import Batch
from curvote.run.store.taking import first


@dataclass(frozen=True)
class Taken:
    """The replicates that a step takes over from an artifact: the first ``kept``."""

    source: Artifact | None
    kept: int = 0

    @classmethod
    def of(cls, project: Project, step: Step) -> Taken:
        """Return what a step takes over; UserError: it was altered since the plan."""
        if step.earlier is None:
            return cls(None)
        source = sound(project, step.stage.name, step.earlier.key)
        return cls(source, step.earlier.kept)

    def others(self, places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Return the places that have to be computed."""
        if self.source is None:
            return places
        return tuple(place for place in places if place[0] >= self.kept)

    def batches(self, table: str) -> Iterator[Batch]:
        """Yield the rows of a table that are taken over, in order."""
        if self.source is not None:
            yield from first(self.source, table, self.kept)


def given(step: Step) -> dict[str, Any]:
    """Return the parameters that a stage is given.

    One that is repeated over replicates is not told how many there are: what it makes
    of one must hold for any number of them.
    """
    if not grows(step):
        return step.params
    return {name: value for name, value in step.params.items() if name != COUNT}


def take_over(
    project: Project, configured: Configured, steps: Sequence[Step]
) -> list[Step]:
    """Let each step that is missing take over what runs with other numbers stored.

    Nothing is where a step is forced, nor in production, which has one replicate.
    """
    missing = {step.id for step in steps if _missing(project, step)}
    if not missing:
        return list(steps)
    own = configured.pipeline.replicates
    counts = {*records.counts(project, configured.name)} - {own}
    known = [siblings(steps, count) for count in sorted(counts, key=_rank(own))]
    return [
        _grown(project, step, own, [each[step.id] for each in known])
        if step.id in missing
        else step
        for step in steps
    ]


def _missing(project: Project, step: Step) -> bool:
    wanted = step.action == "run" and not step.forced and grows(step)
    if not wanted:
        return False
    there = artifact(project, step.stage.name, step.key)
    return there.problem(content=False) == "missing"


def _rank(own: int) -> Callable[[int], tuple[bool, int]]:
    """Return what sorts numbers: the best to take over comes first.

    That is the smallest one that holds all, or else the largest.
    """
    return lambda count: (count < own, count if count > own else -count)


def _grown(project: Project, step: Step, own: int, known: Iterable[Sibling]) -> Step:
    """Return a step with the first of its siblings that is there, if one is."""
    for one in known:
        there = artifact(project, step.stage.name, one.key)
        if one.same and there.problem(content=True) is None:
            earlier = Earlier(one.key, one.count, min(one.count, own))
            return replace(step, earlier=earlier, reason=_words(own, earlier))
    return step


def _words(own: int, earlier: Earlier) -> str:
    if own == earlier.kept:
        return f"no new replicate: the first {own} of {earlier.count} that are there"
    there = "1 is there" if earlier.count == 1 else f"{earlier.count} are there"
    return f"{own - earlier.kept} of {own} replicates: {there}"
