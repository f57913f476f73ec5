"""Identity of production steps: what a pipeline states, and which clients it asks.

A study's key holds code and library versions, so that a change recomputes. In
production that would release again; there the steps up to the last message are named by
(what the pipeline asks, cohort, release number) and are computed once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from curvote.base.durable import create_empty_file, private_folder
from curvote.chain.axis import REPLICATE
from curvote.chain.stage import SHARED, StageContext
from curvote.messages import stages
from curvote.messages.message import messages_of
from curvote.messages.roles import ROLES, publisher_test_mask, split_roles
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Pipeline
from curvote.pipeline.config.source import RawInput
from curvote.pipeline.plan.step import Step, json_digest, lists_digest, step_key

Ids = NDArray[np.int64]


def stated_settings(pipeline: Pipeline) -> dict[str, Any]:
    """Return the settings that a pipeline states, without its defaults.

    A later version may bring new settings: their defaults must not rename what was
    released before them.
    """
    return pipeline.model_dump(mode="json", exclude_defaults=True)


@dataclass(frozen=True)
class Population:
    """The clients of a pipeline, whatever their curves look like.

    ``cohort`` is the digest of who plays which role, ``senders`` the ids of those who
    release something, ``everybody`` all ids of the source. Ids are read when they are
    asked for, by ``read``.
    """

    cohort: str
    read: Callable[[], Cohort]

    @property
    def senders(self) -> Ids:
        """The ids of those who release something."""
        return self.read().senders

    @property
    def everybody(self) -> Ids:
        """All ids of the source."""
        return self.read().ids


@dataclass(frozen=True, eq=False)
class Cohort:
    """All ids (n,) of a source, the digest of their roles, and who sends (n,)."""

    ids: Ids
    cohort: str
    sending: NDArray[np.bool_]

    @property
    def senders(self) -> Ids:
        """The ids of those who release something."""
        return self.ids[self.sending]


def find_people(
    project: Project, configured: ConfiguredPipeline, raw: Sequence[RawInput]
) -> Population:
    """Return the clients of a pipeline; ids are read once for each raw file.

    The digest of roles is kept on the clients' side, under the keyed digest of the
    files and of what else decides it.
    """
    pipeline = configured.pipeline
    paths = {file.name: file.path for file in raw}
    read = cache(partial(_assign_cohort, pipeline, paths))
    if not raw:
        return Population(read().cohort, read)
    settings = {"population": pipeline.population, "seed": pipeline.seed}
    settings |= {"source": pipeline.source, "clients": pipeline.clients.model_dump()}
    files = {file.name: file.public_digest for file in raw}
    name = json_digest({"asked": settings, "files": files})
    place, cohort = project.clients / "cohorts" / f"{name}.json", None
    with suppress(OSError, ValueError, KeyError, TypeError):
        cohort = json.loads(place.read_text(encoding="utf-8"))["cohort"]
    if not isinstance(cohort, str):
        cohort = read().cohort
        with suppress(OSError):  # it is read again then
            private_folder(place.parents[1])
            private_folder(place.parent)
            aside = create_empty_file(place.with_name(f".{place.name}.{uuid4().hex}"))
            aside.write_text(json.dumps({"cohort": cohort}), encoding="utf-8")
            aside.replace(place)
    return Population(cohort, read)


def _assign_cohort(pipeline: Pipeline, paths: Mapping[str, str]) -> Cohort:
    """Read the source's ids, not its curves, and deal the roles."""
    sizes: dict[str, int] = pipeline.clients.model_dump()
    params = {"source": pipeline.source, "clients": sizes, "seed": pipeline.seed}
    params["raw.paths"] = paths
    grouped = bool(pipeline.source.get("groups"))
    wanted = ["client_id", "part", *["group"] * grouped]
    if stages.is_simulated(params):
        context = StageContext("ingest", (0,), (1,), {}, params, {})
        parts = [stages.ingest(context)["clients"]]
    else:
        parts = [
            {name: values for name, values in part.items() if name in wanted}
            for part in stages.client_groups(params)
        ]
    names = [name for name in wanted if name in parts[0]]
    who = {name: np.concatenate([part.pop(name) for part in parts]) for name in names}
    ids, groups = who["client_id"], who.get("group")
    roles = split_roles(
        pipeline.seed, 0, len(ids), sizes, groups, test_mask=publisher_test_mask(who)
    )
    members = {role: partial(_sorted_ids, ids, roles[role]) for role in ROLES}
    cohort = lists_digest({"population": pipeline.population}, members)
    sending = np.zeros(len(ids), dtype=bool)
    for message in messages_of(pipeline.protocol).values():
        sending[message.senders.rows(roles)] = True
    return Cohort(ids, cohort, sending)


def _sorted_ids(ids: Ids, rows: NDArray[np.int64]) -> Ids:
    selected = ids[rows]
    selected.sort()
    return selected


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
        siblings = {name: by_step[source] for name, source in step.sources.items()}
        inputs = {name: sibling.key for name, sibling in siblings.items()}
        counted = {REPLICATES_KEY: count} if REPLICATES_KEY in step.params else {}
        params = step.params | counted
        unchanged = inputs == step.inputs and params == step.params
        components = step.components | {"params": params, "inputs": inputs}
        key = step.key if unchanged else step_key(components)
        same = unchanged or has_replicates(step)
        same = same and all(sibling.same for sibling in siblings.values())
        by_step[step.id] = Sibling(key, count, same)
    return by_step
