"""Command `curvote ledger restore`: a backup replaces a lost or older ledger.

A backup does not know what was released after it. Whatever the store, the append-only
copy, the run records, the witnesses and the ledger in place tell of it is entered as
spent before the backup takes the ledger's place, so that it never counts less than what
left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from curvote.client.ledger import Ledger, open_existing
from curvote.client.ledger_backup import checked_copy, merge_journal
from curvote.client.ledger_told import RestoringLedger
from curvote.durable import private_folder, sync_folder
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget
from curvote.run.project import Project
from curvote.run.release import evidence, releases_log
from curvote.run.release.evidence import Trace
from curvote.run.release.lost import LostRelease, lost_releases
from curvote.run.release.releases_log import ProjectAccounts
from curvote.run.release.releasing import hold_ledger


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
        checked_copy(file, project.state) as draft,
    ):
        evidence, entered, caps = _collect_evidence(project, file, draft, accounts)
        with RestoringLedger(draft) as copy:
            copy.restore_caps(caps)
        _enter_evidence(draft, entered, evidence, accounts)
        merge_journal(draft)
        aside = _replace_ledger(draft, project.ledger)
    with hold_ledger(project), Ledger(project.ledger) as ledger:
        releases_log.update_copies(project, ledger, accounts.witnesses)
    return RestoreResult(entered, aside)


def _collect_evidence(
    project: Project, file: Path, draft: Path, accounts: ProjectAccounts
) -> tuple[list[Trace], tuple[LostRelease, ...], dict[str, Budget]]:
    """Return the project's traces, the lost releases, and the present caps.

    With them the caps of the ledger in place, if it is the same.
    """
    witnesses = accounts.witnesses
    with _present_ledger(project) as present, Ledger(draft) as copy:
        all_traces = [
            *evidence.find_traces(project, witnesses),
            *_ledger_traces(project, present),
        ]
        project_traces = _project_traces(all_traces, copy, accounts)
        _refuse_foreign_backup(file, project_traces, copy, accounts)
        for witness in releases_log.open_witnesses(project, witnesses):
            releases_log.refuse_missing_witness(witness, copy)
        same = present and present.origin() == copy.origin()
        caps = present.caps() if present and same else {}
        return (
            project_traces,
            tuple(lost_releases(project, project_traces, copy, present)),
            caps,
        )


@contextmanager
def _present_ledger(project: Project) -> Iterator[Ledger | None]:
    """Yield the ledger in place; None: it is missing or cannot be read."""
    try:
        ledger = open_existing(project.ledger)
    except UserError:
        ledger = None
    try:
        yield ledger
    finally:
        if ledger:
            ledger.close()


def _ledger_traces(project: Project, present: Ledger | None) -> Iterator[Trace]:
    """Yield a trace for each movement of the ledger in place."""
    if present is None:
        return
    where, origin = str(project.ledger.relative_to(project.root)), present.origin()
    for move in present.movements():
        line = asdict(move) | {"ledger": origin}
        about = (move.release, move.head)
        yield Trace(where, *about, published=False, line=line, ledger=origin)


def _project_traces(
    traces: Iterable[Trace], copy: Ledger, accounts: ProjectAccounts
) -> list[Trace]:
    """Return the traces that are about this project's ledger or populations.

    So may a ledger that was put in place by mistake.
    """
    origin, populations = copy.origin(), accounts.populations
    return [
        trace
        for trace in traces
        if trace.ledger in {None, origin}
        or (trace.line and trace.line.get("population") in populations)
    ]


def _refuse_foreign_backup(
    file: Path, traces: Sequence[Trace], copy: Ledger, accounts: ProjectAccounts
) -> None:
    """Refuse a backup of another project's ledger: UserError."""
    origins = {trace.line.get("ledger") for trace in traces if trace.line}
    heads = {trace.head for trace in traces if trace.head}
    if copy.origin() in origins or any(map(copy.knows, heads)):
        return
    populations = {entry.population for entry in copy.entries()}
    if traces or (populations and not populations & accounts.populations):
        whose = (
            f" of population {', '.join(sorted(populations))}" if populations else ""
        )
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
    with RestoringLedger(draft) as copy:
        confirmed = {t.release for t in traces if t.published or _is_settled(t)}
        for entry in copy.entries():
            if entry.state == "reserved" and entry.release in confirmed:
                copy.mark_spent(entry.release)
        for release in entered:
            _enter_release(copy, release, accounts)
        for head in {trace.head for trace in traces if trace.head}:
            copy.accept_head(head)
    with Ledger(draft) as copy:
        unknown = [*evidence.missing_releases(traces, copy), *copy.problems()]
    if unknown:
        raise InternalError(f"a restored ledger is not sound: {unknown[0]}")


def _is_settled(trace: Trace) -> bool:
    line = trace.line or {}
    return line.get("state") in {"confirmed", "spent"}


def _enter_release(
    copy: RestoringLedger, lost_release: LostRelease, accounts: ProjectAccounts
) -> None:
    """Enter a lost release as spent, for its clients or for everybody."""
    if lost_release.population and lost_release.clients is not None:
        budget = lost_release.budget or _max_budget(
            copy, lost_release.population, accounts
        )
        owner, facts = lost_release.population, lost_release.facts
        copy.enter_spent(
            lost_release.release,
            lost_release.clients,
            budget,
            population=owner,
            facts=facts,
        )
        return
    known_populations = {
        entry.population for entry in copy.entries()
    } | accounts.populations
    every = (
        [lost_release.population]
        if lost_release.population
        else sorted(known_populations)
    )
    for i, population in enumerate(every):
        name = f"{lost_release.release}+{population}" if i else lost_release.release
        budget = lost_release.budget or _max_budget(copy, population, accounts)
        copy.charge_everyone(name, budget, population)


def _max_budget(
    copy: RestoringLedger, population: str, accounts: ProjectAccounts
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
