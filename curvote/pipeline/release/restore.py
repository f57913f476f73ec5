"""Restoration of a lost or older ledger: missing releases are entered as spent.

Three sources, the best first: the ledger that was in place, if it can still be read;
the pipelines, whose plan names a release by what it asks of whom; else only what a line
or a record says, and then everybody of the population is charged.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.durable import private_folder, sync_folder
from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.ledger import book
from curvote.ledger.amounts import CANCELLED, RESERVED, Amount, ReleaseFacts
from curvote.ledger.traces import Trace, ledger_traces, missing_releases
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import MissingFiles, raw_files
from curvote.pipeline.plan.expand import expand
from curvote.pipeline.plan.step import Population, ReleaseState, Step, find_people
from curvote.pipeline.release import evidence, production
from curvote.pipeline.release.evidence import ProjectAccounts
from curvote.pipeline.release.production import hold_ledger
from curvote.pipeline.store import records


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
    traces: Sequence[Trace],
    copy: book.Ledger,
    present: book.Ledger | None,
) -> Iterator[LostRelease]:
    """Yield each release that has a trace and is not in ``copy``, once."""
    missing = _missing_traces(traces, copy)
    candidates = list(_reconstruct(project, missing, copy, present))
    anybody = {r.release: r.population for r in candidates if r.clients is None}
    everyone = copy.everyone_releases() | anybody
    for release in candidates:
        # What newcomers were charged for everybody's release follows from that.
        base = release.release.rpartition("+")[0]
        if base not in everyone or everyone[base] not in {None, release.population}:
            yield release


def _reconstruct(
    project: Project,
    missing: Mapping[str, Sequence[Trace]],
    copy: book.Ledger,
    present: book.Ledger | None,
) -> Iterator[LostRelease]:
    planned: dict[str, PlannedRelease] = {}
    numbers = [int(e.facts.get("number", 0)) for e in copy.entries()]
    most = max(numbers, default=0) + len(missing)
    file = PipelinesFile(project)
    for name in file.names():
        with suppress(UserError, InternalError, OSError):
            pipeline = file.configure_pipeline(name)
            configured = evidence.with_population(project, pipeline, copy)
            up_to = most if missing else 0
            for release_plan in _enumerate_releases(project, configured, up_to):
                key = release_plan[0].key
                if key in missing:
                    planned.setdefault(key, release_plan)
    everyone = present.everyone_releases() if present else {}
    for release, traces in missing.items():
        entry = present.entry(release) if present else None
        lines = [t.line for t in traces if t.line and "population" in t.line]
        line = max(lines, key=lambda line: int(line.get("sequence", 0)), default=None)
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


def _missing_traces(
    all_traces: Sequence[Trace], copy: book.Ledger
) -> dict[str, list[Trace]]:
    """Return the traces of each release that is unknown to ``copy``."""
    by_release: dict[str, list[Trace]] = {}
    for trace in all_traces:
        if isinstance(trace.release, str):
            by_release.setdefault(trace.release, []).append(trace)
    entries = {e.release for e in copy.entries() if e.counts}
    entries |= copy.everyone_releases().keys()
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


def _line_budget(line: Mapping[str, Any]) -> Budget:
    return Amount.from_texts(str(line["epsilon"]), str(line["delta"])).budget()


def _recorded_population(project: Project, release: str) -> str | None:
    """Return the population of a release by the record of its run."""
    for record in records.load_records(project):
        if any(step["key"] == release for step in record.steps):
            accounts = record.config.get("ledger") or {}
            population = accounts.get("population") or record.config["source"]["name"]
            return str(population)
    return None


PlannedRelease = tuple[Step, Population]


def _enumerate_releases(
    project: Project, configured: ConfiguredPipeline, max_number: int
) -> Iterator[PlannedRelease]:
    """Yield the release steps of a pipeline with each number up to ``most``.

    What a first release is followed by is asked anew, so its number is 1 again.
    """
    pipeline = configured.pipeline
    if not pipeline.production or pipeline.intake or not max_number:
        return
    raw = raw_files(project, pipeline, fetch=False)
    if isinstance(raw, MissingFiles):
        return
    people = find_people(project, configured, raw)

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
    step, people = planned
    clients, budget = people.senders, _line_budget(line) if line else None
    with suppress(Exception):  # a table that it reads is gone, too
        clients = production.sender_ids(project, step)
    with suppress(Exception):
        spends = production.task_of_step(project, step).cost()
        least = Amount.from_budget(spends)
        budget = Amount.from_budget(budget).most(least).budget() if budget else spends
    population = str(step.components["release"]["population"])
    about = step.key, where, population, budget
    if line and len(clients) < int(line["clients"]):  # the pipeline's people changed
        return LostRelease(*about)
    return LostRelease(*about, np.asarray(clients), production.release_facts(step))


@dataclass(frozen=True)
class RestoreResult:
    """The result of a restore: releases entered as spent, old ledger's place."""

    entered: tuple[LostRelease, ...]
    aside: Path | None


def restore_ledger(project: Project, file: Path) -> RestoreResult:
    """Replace the project's ledger by a copy of the ledger ``file``.

    What it does not know and others tell of is entered as spent: for the clients that a
    pipeline of today's file names, else for every client of the population, also those
    who come later. The ledger that was there is set aside, never deleted. UserError,
    nothing is changed: ``file`` is no ledger, damaged, of another project or
    population; a witness cannot be read; a release is going on.
    """
    accounts = ProjectAccounts(project)
    private_folder(project.state)
    with (
        hold_ledger(project, exclusive=True),
        book.checked_copy(file, project.state) as draft,
    ):
        traces, entered, caps = _collect_evidence(project, file, draft, accounts)
        with book.RestoringLedger(draft) as copy:
            copy.restore_caps(caps)
        _enter_evidence(draft, entered, traces, accounts)
        book.merge_journal(draft)
        aside = _replace_ledger(draft, project.ledger)
    with hold_ledger(project), book.Ledger(project.ledger) as ledger:
        evidence.copies(project, accounts.witnesses).update(ledger)
    return RestoreResult(entered, aside)


def _collect_evidence(
    project: Project, file: Path, draft: Path, accounts: ProjectAccounts
) -> tuple[list[Trace], tuple[LostRelease, ...], dict[str, Budget]]:
    """Return the project's traces, the lost releases, and the present caps.

    With them the caps of the ledger in place, if it is the same.
    """
    witnesses = accounts.witnesses
    with _present_ledger(project) as present, book.Ledger(draft) as copy:
        where = str(project.ledger.relative_to(project.root))
        all_traces = [
            *evidence.find_traces(project, witnesses),
            *ledger_traces(where, present),
        ]
        origin, populations = copy.origin(), accounts.populations
        project_traces = [
            trace
            for trace in all_traces
            if trace.ledger in {None, origin}
            or (trace.line and trace.line.get("population") in populations)
        ]
        _refuse_foreign_backup(file, project_traces, copy, accounts)
        evidence.copies(project, witnesses).refuse_missing_witnesses(copy)
        same = present and present.origin() == copy.origin()
        caps = present.caps() if present and same else {}
        lost = tuple(lost_releases(project, project_traces, copy, present))
        return project_traces, lost, caps


@contextmanager
def _present_ledger(project: Project) -> Iterator[book.Ledger | None]:
    """Yield the ledger in place; None: it is missing or cannot be read."""
    try:
        ledger = book.open_existing(project.ledger)
    except UserError:
        ledger = None
    try:
        yield ledger
    finally:
        if ledger:
            ledger.close()


def _refuse_foreign_backup(
    file: Path, traces: Sequence[Trace], copy: book.Ledger, accounts: ProjectAccounts
) -> None:
    """Refuse a backup of another project's ledger: UserError."""
    origins = {trace.line.get("ledger") for trace in traces if trace.line}
    heads = {trace.head for trace in traces if trace.head}
    if copy.origin() in origins or any(map(copy.knows, heads)):
        return
    populations = {entry.population for entry in copy.entries()}
    if traces or (populations and not populations & accounts.populations):
        names = ", ".join(sorted(populations))
        whose = f" of population {names}" if populations else ""
        raise UserError(
            f"{file} is another ledger{whose}: it knows nothing of what was released"
            " here. Nothing was changed. Name a backup of this project's ledger."
        )


def _enter_evidence(
    draft: Path,
    entered: Sequence[LostRelease],
    traces: Sequence[Trace],
    accounts: ProjectAccounts,
) -> None:
    """Enter all traces and lost releases; then the copy lacks none of them."""
    with book.RestoringLedger(draft) as copy:
        confirmed = {
            trace.release
            for trace in traces
            if trace.published
            or (trace.line or {}).get("state") in {"confirmed", "spent"}
        }
        for entry in copy.entries():
            if entry.state == "reserved" and entry.release in confirmed:
                copy.mark_spent(entry.release)
        for lost in entered:
            owner = lost.population
            if owner and lost.clients is not None:
                budget = lost.budget or _max_budget(copy, owner, accounts)
                ids, facts = lost.clients, lost.facts
                copy.enter_spent(
                    lost.release, ids, budget, population=owner, facts=facts
                )
                continue
            # Nobody knows whose it is: everybody is charged.
            names = {entry.population for entry in copy.entries()}
            every = [owner] if owner else sorted(names | accounts.populations)
            for i, population in enumerate(every):
                name = f"{lost.release}+{population}" if i else lost.release
                budget = lost.budget or _max_budget(copy, population, accounts)
                copy.charge_everyone(name, budget, population)
        for head in {trace.head for trace in traces if trace.head}:
            copy.accept_head(head)
    with book.Ledger(draft) as copy:
        unknown = [*missing_releases(traces, copy), *copy.problems()]
    if unknown:
        raise InternalError(f"a restored ledger is not sound: {unknown[0]}")


def _max_budget(
    copy: book.RestoringLedger, population: str, accounts: ProjectAccounts
) -> Budget:
    """Return the most that a client may spend, by the ledger's or file's cap."""
    caps = [c for c in (copy.cap(population), *accounts.caps(population)) if c]
    if not caps:
        raise UserError(
            f"population {population!r} has no cap, so nobody can say what was spent"
            " there. Write `ledger: {per_client: ...}` for a pipeline of it again, as"
            " it was. Nothing was changed."
        )
    return Budget(max(c.epsilon for c in caps), max(c.delta for c in caps))


def _replace_ledger(draft: Path, ledger: Path) -> Path | None:
    """Replace the ledger by a finished file; return the old one's new path.

    At no moment is there no ledger: an older one, or one without its journal, is
    recognised, and the same command mends it.
    """
    aside = None
    if os.path.lexists(ledger) or os.path.lexists(f"{ledger}-wal"):
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        aside = ledger.with_name(f"{ledger.stem}-aside-{now}.sqlite")
        if os.path.lexists(ledger):
            os.link(ledger, aside)
        for end in ("-wal", "-shm"):
            if os.path.lexists(f"{ledger}{end}"):
                Path(f"{ledger}{end}").rename(f"{aside}{end}")
        sync_folder(ledger.parent)  # its journal is never played back into another
    draft.replace(ledger)
    sync_folder(ledger.parent)
    return aside
