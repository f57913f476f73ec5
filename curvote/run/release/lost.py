"""Restoration of a lost or older ledger: missing releases are entered as spent.

Three sources, the best first: the ledger that was in place, if it can still be read;
the pipelines, whose plan names a release by what it asks of whom; else only what a line
or a record says, and then everybody of the population is charged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.client.ledger import Ledger
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_entries import CANCELLED, RESERVED, ReleaseFacts
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget
from curvote.run import history
from curvote.run.config.file import ConfiguredPipeline, PipelinesFile
from curvote.run.config.source import MissingFiles, raw_files
from curvote.run.plan import identity
from curvote.run.plan.expand import expand
from curvote.run.plan.step import ReleaseState, Step
from curvote.run.project import Project
from curvote.run.release import own_files, releasing
from curvote.run.release.evidence import Trace


@dataclass(frozen=True)
class LostRelease:
    """A missing release; ``clients`` None is everybody of ``population``.

    ``population`` None is every one; ``budget`` None is all that a client may spend.
    """

    release: str
    where: str
    population: str | None = None
    budget: Budget | None = None
    clients: NDArray[Any] | None = None
    facts: ReleaseFacts = field(default_factory=dict)


def lost_releases(
    project: Project,
    evidence: Sequence[Trace],
    copy: Ledger,
    present: Ledger | None,
) -> Iterator[LostRelease]:
    """Yield each release that has a trace and is not in ``copy``, once."""
    candidates = list(
        _reconstruct(project, _missing_traces(evidence, copy), copy, present)
    )
    anybody = {
        release.release: release.population
        for release in candidates
        if release.clients is None
    }
    everyone = copy.everyone_releases() | anybody
    for release in candidates:
        # What newcomers were charged for everybody's release follows from that.
        base = release.release.rpartition("+")[0]
        if base not in everyone or everyone[base] not in {None, release.population}:
            yield release


def _reconstruct(
    project: Project,
    missing: Mapping[str, Sequence[Trace]],
    copy: Ledger,
    present: Ledger | None,
) -> Iterator[LostRelease]:
    planned = _planned_releases(project, missing, copy)
    everyone = present.everyone_releases() if present else {}
    for release, traces in missing.items():
        entry = present.entry(release) if present else None
        line = _latest_line(traces)
        where = traces[0].where
        if present and entry and entry.counts:
            clients = None if release in everyone else present.members(release)
            about = entry.population, entry.budget, clients
            yield LostRelease(release, where, *about, entry.facts)
        elif release in planned:
            yield _from_plan(project, where, planned[release], line)
        elif line:
            yield LostRelease(release, where, line["population"], _line_budget(line))
        else:
            yield LostRelease(release, where, _recorded_population(project, release))


def _missing_traces(evidence: Sequence[Trace], copy: Ledger) -> dict[str, list[Trace]]:
    """Return the traces of each release that is unknown to ``copy``."""
    by_release: dict[str, list[Trace]] = {}
    for trace in evidence:
        if isinstance(trace.release, str):
            by_release.setdefault(trace.release, []).append(trace)
    entries = {
        e.release for e in copy.entries() if e.counts
    } | copy.everyone_releases().keys()
    return {
        release: traces
        for release, traces in by_release.items()
        if release not in entries
        and (any(t.published for t in traces) or _may_have_left(traces))
    }


def _may_have_left(traces: Sequence[Trace]) -> bool:
    """Return whether noise may have left: not if all reservations were undone.

    Two copies of a ledger may tell of one release, and only one of them took it back.
    """
    states = {t.head: t.line.get("state") for t in traces if t.line}
    n = Counter(states.values())
    settled = n[RESERVED] + n[CANCELLED]
    return not settled or n.total() > settled or n[RESERVED] > n[CANCELLED]


def _latest_line(traces: Sequence[Trace]) -> Mapping[str, Any] | None:
    """Return the latest line about a release in an append-only file."""
    lines = [t.line for t in traces if t.line and "population" in t.line]
    return max(lines, key=lambda line: int(line.get("sequence", 0)), default=None)


def _line_budget(line: Mapping[str, Any]) -> Budget:
    return Amount.from_texts(str(line["epsilon"]), str(line["delta"])).budget()


def _recorded_population(project: Project, release: str) -> str | None:
    """Return the population of a release by the record of its run."""
    for record in history.load_records(project):
        if any(step["key"] == release for step in record.steps):
            accounts = record.config.get("ledger") or {}
            population = accounts.get("population") or record.config["source"]["name"]
            return str(population)
    return None


PlannedRelease = tuple[Step, ConfiguredPipeline, identity.Population]


def _planned_releases(
    project: Project, missing: Mapping[str, object], copy: Ledger
) -> dict[str, PlannedRelease]:
    """Return the step of each missing release that a pipeline plans today."""
    releases: dict[str, PlannedRelease] = {}
    numbers = [int(e.facts.get("number", 0)) for e in copy.entries()]
    most = max(numbers, default=0) + len(missing)
    file = PipelinesFile(project)
    for name in file.names():
        with suppress(UserError, InternalError, OSError):
            pipeline = file.configure_pipeline(name)
            configured = own_files.with_population(project, pipeline, copy)
            for step, people in _enumerate_releases(
                project, configured, most if missing else 0
            ):
                if step.key in missing:
                    releases.setdefault(step.key, (step, configured, people))
    return releases


def _enumerate_releases(
    project: Project, configured: ConfiguredPipeline, max_number: int
) -> Iterator[tuple[Step, identity.Population]]:
    """Yield the release steps of a pipeline with each number up to ``most``.

    What a first release is followed by is asked anew, so its number is 1 again.
    """
    pipeline = configured.pipeline
    if not pipeline.production or pipeline.intake or not max_number:
        return
    raw = raw_files(project, pipeline, fetch=False)
    if isinstance(raw, MissingFiles):
        return
    people = identity.find_people(project, configured, raw)

    def release_steps(number: int, first: set[str] | None = None) -> Iterator[Step]:
        release_state = ReleaseState(
            people.cohort,
            lambda base: number if first is None or base in first else 1,
            lambda _: None,
        )
        return (step for step in expand(configured, raw, release_state) if step.release)

    bases = [{s.release.base for s in release_steps(n) if s.release} for n in (1, 2)]
    first = bases[0] & bases[1]
    for number in range(1, max_number + 1):
        for step in release_steps(number, first):
            yield step, people


def _from_plan(
    project: Project,
    where: str,
    planned: PlannedRelease,
    line: Mapping[str, Any] | None,
) -> LostRelease:
    """Return a lost release that a pipeline plans: its clients and budget."""
    step, _, people = planned
    clients, budget = people.senders, _line_budget(line) if line else None
    with suppress(Exception):  # a table that it reads is gone, too
        clients = releasing.sender_ids(project, step)
    with suppress(Exception):
        spends = releasing.task_of_step(project, step).cost()
        budget = _higher_budget(budget, spends) if budget else spends
    population = str(step.components["release"]["population"])
    about = step.key, where, population, budget
    if line and len(clients) < int(line["clients"]):  # the pipeline's people changed
        return LostRelease(*about)
    return LostRelease(*about, np.asarray(clients), releasing.release_facts(step))


def _higher_budget(first: Budget, second: Budget) -> Budget:
    return Amount.from_budget(first).most(Amount.from_budget(second)).budget()
