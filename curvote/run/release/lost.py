"""Releases that a ledger should know and does not: of whom they were, at what cost.

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
from curvote.client.ledger_entries import CANCELLED, RESERVED, Facts
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget
from curvote.run import history
from curvote.run.config.file import Configured, PipelinesFile
from curvote.run.config.source import Absent, raw_files
from curvote.run.plan import identity
from curvote.run.plan.expand import expand
from curvote.run.plan.step import Standing, Step
from curvote.run.project import Project
from curvote.run.release import own_files, releasing
from curvote.run.release.evidence import Trace


@dataclass(frozen=True)
class Lost:
    """A release that is missing: ``clients`` None is everybody of ``population``.

    ``population`` None is every one; ``budget`` None is all that a client may spend.
    """

    release: str
    where: str
    population: str | None = None
    budget: Budget | None = None
    clients: NDArray[Any] | None = None
    facts: Facts = field(default_factory=dict)


def lost(
    project: Project,
    told: Sequence[Trace],
    copy: Ledger,
    present: Ledger | None,
) -> Iterator[Lost]:
    """Yield what ``told`` tells of and ``copy`` does not hold, each release once."""
    found = list(_every(project, _missing(told, copy), copy, present))
    anybody = {one.release: one.population for one in found if one.clients is None}
    everyone = copy.everyone() | anybody
    for one in found:
        # What newcomers were charged for everybody's release follows from that.
        base = one.release.rpartition("+")[0]
        if base not in everyone or everyone[base] not in {None, one.population}:
            yield one


def _every(
    project: Project,
    missing: Mapping[str, Sequence[Trace]],
    copy: Ledger,
    present: Ledger | None,
) -> Iterator[Lost]:
    named = _named_by_pipelines(project, missing, copy)
    everyone = present.everyone() if present else {}
    for release, traces in missing.items():
        known = present.entry(release) if present else None
        line = _line(traces)
        where = traces[0].where
        if present and known and known.counts:
            clients = None if release in everyone else present.members(release)
            about = known.population, known.budget, clients
            yield Lost(release, where, *about, known.facts)
        elif release in named:
            yield _planned(project, where, named[release], line)
        elif line:
            yield Lost(release, where, line["population"], _budget(line))
        else:
            yield Lost(release, where, _recorded(project, release))


def _missing(told: Sequence[Trace], copy: Ledger) -> dict[str, list[Trace]]:
    """Return what tells of each release that left, or may have, unknown to ``copy``."""
    found: dict[str, list[Trace]] = {}
    for trace in told:
        if isinstance(trace.release, str):
            found.setdefault(trace.release, []).append(trace)
    entries = {e.release for e in copy.entries() if e.counts} | copy.everyone().keys()
    return {
        release: traces
        for release, traces in found.items()
        if release not in entries and (any(t.left for t in traces) or _counts(traces))
    }


def _counts(traces: Sequence[Trace]) -> bool:
    """Say whether noise may have left: unless each reservation was taken back.

    Two copies of a ledger may tell of one release, and only one of them took it back.
    """
    states = {t.head: t.line.get("state") for t in traces if t.line}
    n = Counter(states.values())
    known = n[RESERVED] + n[CANCELLED]
    return not known or n.total() > known or n[RESERVED] > n[CANCELLED]


def _line(traces: Sequence[Trace]) -> Mapping[str, Any] | None:
    """Return the latest line about a release, the witness's rather than the copy's."""
    lines = [t.line for t in traces if t.line and "population" in t.line]
    return max(lines, key=lambda line: int(line.get("sequence", 0)), default=None)


def _budget(line: Mapping[str, Any]) -> Budget:
    return Amount.read(str(line["epsilon"]), str(line["delta"])).budget()


def _recorded(project: Project, release: str) -> str | None:
    """Return the population of which a run's record says that it made the release."""
    for record in history.load_all(project):
        if any(step["key"] == release for step in record.steps):
            accounts = record.config.get("ledger") or {}
            named = accounts.get("population") or record.config["source"]["name"]
            return str(named)
    return None


Named = tuple[Step, Configured, identity.People]


def _named_by_pipelines(
    project: Project, missing: Mapping[str, object], copy: Ledger
) -> dict[str, Named]:
    """Return the step of each release that a pipeline of today's file would make."""
    found: dict[str, Named] = {}
    known = [int(e.facts.get("number", 0)) for e in copy.entries()]
    most = max(known, default=0) + len(missing)
    file = PipelinesFile(project)
    for name in file.names():
        with suppress(UserError, InternalError, OSError):
            stated = file.configured(name)
            configured = own_files.settled(project, stated, copy)
            for step, people in _releases(project, configured, most if missing else 0):
                if step.key in missing:
                    found.setdefault(step.key, (step, configured, people))
    return found


def _releases(
    project: Project, configured: Configured, most: int
) -> Iterator[tuple[Step, identity.People]]:
    """Yield the releases of a pipeline, of clients here, with each number to ``most``.

    What a first release is followed by is asked anew, so its number is 1 again.
    """
    pipeline = configured.pipeline
    if not pipeline.production or pipeline.intake or not most:
        return
    raw = raw_files(project, pipeline, fetch=False)
    if isinstance(raw, Absent):
        return
    people = identity.people(project, configured, raw)

    def steps(number: int, first: set[str] | None = None) -> Iterator[Step]:
        standing = Standing(
            people.cohort,
            lambda base: number if first is None or base in first else 1,
            lambda _: None,
        )
        return (step for step in expand(configured, raw, standing) if step.release)

    bases = [{s.release.base for s in steps(n) if s.release} for n in (1, 2)]
    first = bases[0] & bases[1]
    for number in range(1, most + 1):
        for step in steps(number, first):
            yield step, people


def _planned(
    project: Project, where: str, named: Named, line: Mapping[str, Any] | None
) -> Lost:
    """Return a release that a pipeline names: its clients, or all who send there."""
    step, _, people = named
    clients, budget = people.senders, _budget(line) if line else None
    with suppress(Exception):  # a table that it reads is gone, too
        clients = releasing.senders(project, step)
    with suppress(Exception):
        spends = releasing.asked(project, step).spends()
        budget = _higher(budget, spends) if budget else spends
    population = str(step.components["release"]["population"])
    about = step.key, where, population, budget
    if line and len(clients) < int(line["clients"]):  # the pipeline's people changed
        return Lost(*about)
    return Lost(*about, np.asarray(clients), releasing.named(step))


def _higher(one: Budget, other: Budget) -> Budget:
    return Amount.of(one).most(Amount.of(other)).budget()
