"""What a study's steps are called with another number of replicates.

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

Id = tuple[str, str]
# How often a study repeats itself, as stages with that index would read it.
COUNT = f"{REPLICATE.name}s"


@dataclass(frozen=True)
class Sibling:
    """The key of a step with ``count`` replicates; ``same``: its rows are the same.

    They are not where a stage looks over all replicates, or reads what such a one made.
    """

    key: str
    count: int
    same: bool


def grows(step: Step) -> bool:
    """Say whether each replicate of a step has rows of its own, in a study."""
    each = step.index[:1] == (REPLICATE.name,) and step.places[:1] != (SHARED,)
    return each and not step.private


def siblings(steps: Sequence[Step], count: int) -> dict[Id, Sibling]:
    """Return each step of a study's plan as it is with ``count`` replicates.

    ``steps`` are all of a plan: inputs come before what reads them.
    """
    found: dict[Id, Sibling] = {}
    for step in steps:
        found[step.id] = _sibling(step, count, found)
    return found


def _sibling(step: Step, count: int, found: dict[Id, Sibling]) -> Sibling:
    read = {name: found[source] for name, source in step.sources.items()}
    inputs = {name: one.key for name, one in read.items()}
    params = step.params | ({COUNT: count} if COUNT in step.params else {})
    unchanged = inputs == step.inputs and params == step.params
    key = step.key
    if not unchanged:
        named = step.components | {"params": params, "inputs": inputs}
        key = fingerprint.key(named)
    same = unchanged or grows(step)
    return Sibling(key, count, same and all(one.same for one in read.values()))
