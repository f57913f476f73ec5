"""Keys of a study's steps with another number of replicates.

A replicate is made from what the same replicate read, and from nothing that says how
many there are: so one that an earlier study stored serves a longer or shorter one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from curvote.chain.axis import REPLICATE
from curvote.chain.stage import SHARED
from curvote.run.plan import fingerprint
from curvote.run.plan.step import Step

StepId = tuple[str, str]
# How often a study repeats itself, as stages with that index would read it.
REPLICATES_KEY = f"{REPLICATE.name}s"


@dataclass(frozen=True)
class Sibling:
    """The key of a step with ``count`` replicates; ``same``: rows are equal.

    They are not where a stage looks over all replicates, or reads what such a one made.
    """

    key: str
    count: int
    same: bool


def has_replicates(step: Step) -> bool:
    """Return whether each replicate of a study's step has rows of its own."""
    replicated = step.index[:1] == (REPLICATE.name,) and step.places[:1] != (SHARED,)
    return replicated and not step.private


def sibling_steps(steps: Sequence[Step], count: int) -> dict[StepId, Sibling]:
    """Return the siblings of a plan's steps with ``count`` replicates.

    ``steps`` are all of a plan: inputs come before what reads them.
    """
    by_step: dict[StepId, Sibling] = {}
    for step in steps:
        by_step[step.id] = _sibling_step(step, count, by_step)
    return by_step


def _sibling_step(step: Step, count: int, by_step: dict[StepId, Sibling]) -> Sibling:
    inputs_by_name = {name: by_step[source] for name, source in step.sources.items()}
    inputs = {name: sibling.key for name, sibling in inputs_by_name.items()}
    params = step.params | (
        {REPLICATES_KEY: count} if REPLICATES_KEY in step.params else {}
    )
    unchanged = inputs == step.inputs and params == step.params
    key = step.key
    if not unchanged:
        named = step.components | {"params": params, "inputs": inputs}
        key = fingerprint.step_key(named)
    same = unchanged or has_replicates(step)
    return Sibling(
        key, count, same and all(sibling.same for sibling in inputs_by_name.values())
    )
