"""`curvote ledger restore`: a backup in place of a ledger that is lost or older.

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

from curvote.client.ledger import Ledger, existing
from curvote.client.ledger_backup import checked_copy, make_whole
from curvote.client.ledger_told import Restoring
from curvote.durable import owner_folder, sync_folder
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget
from curvote.run.project import Project
from curvote.run.release import evidence, releases_log
from curvote.run.release.evidence import Trace
from curvote.run.release.lost import Lost, lost
from curvote.run.release.releases_log import Accounts
from curvote.run.release.releasing import in_place


@dataclass(frozen=True)
class Restored:
    """What a restore did: what it entered as spent, where the old ledger is now."""

    entered: tuple[Lost, ...]
    aside: Path | None


def restore(project: Project, file: Path) -> Restored:
    """Put a copy of the ledger ``file`` in the ledger's place.

    What it does not know and others tell of is entered as spent: for the clients that a
    pipeline of today's file names, else for every client of the population, also those
    who come later. The ledger that was there is set aside, never deleted. UserError,
    nothing is changed: ``file`` is no ledger, damaged, of another project or
    population; a witness cannot be read; a release is going on.
    """
    accounts = Accounts(project)
    owner_folder(project.state)
    with (
        in_place(project, alone=True),
        checked_copy(file, project.state) as made,
    ):
        told, entered, caps = _told(project, file, made, accounts)
        with Restoring(made) as copy:
            copy.keep_caps(caps)
        _enter(made, entered, told, accounts)
        make_whole(made)
        aside = _put(made, project.ledger)
    with in_place(project), Ledger(project.ledger) as ledger:
        releases_log.catch_up(project, ledger, accounts.witnesses)
    return Restored(entered, aside)


def _told(
    project: Project, file: Path, made: Path, accounts: Accounts
) -> tuple[list[Trace], tuple[Lost, ...], dict[str, Budget]]:
    """Return what is told of this project, and what of it the copy does not hold.

    With them the caps of the ledger in place, if it is the same.
    """
    named = accounts.witnesses
    with _present(project) as present, Ledger(made) as copy:
        told = [*evidence.traces(project, named), *_remembered(project, present)]
        mine = _mine(told, copy, accounts)
        _refuse_other(file, mine, copy, accounts)
        for witness in releases_log.witnesses(project, named):
            releases_log.refuse_gone(witness, copy)
        same = present and present.origin() == copy.origin()
        caps = present.caps() if present and same else {}
        return mine, tuple(lost(project, mine, copy, present)), caps


@contextmanager
def _present(project: Project) -> Iterator[Ledger | None]:
    """Open the ledger that is in place; None: it is not there, or cannot be read."""
    try:
        found = existing(project.ledger)
    except UserError:
        found = None
    try:
        yield found
    finally:
        if found:
            found.close()


def _remembered(project: Project, present: Ledger | None) -> Iterator[Trace]:
    """Yield what the ledger in place tells, as a line of an append-only file would."""
    if present is None:
        return
    where, origin = str(project.ledger.relative_to(project.root)), present.origin()
    for move in present.movements():
        line = asdict(move) | {"ledger": origin}
        about = (move.release, move.head)
        yield Trace(where, *about, left=False, line=line, ledger=origin)


def _mine(told: Iterable[Trace], copy: Ledger, accounts: Accounts) -> list[Trace]:
    """Return what is told of this project; a witness may know others.

    So may a ledger that was put in place by mistake.
    """
    own, people = copy.origin(), accounts.populations
    return [
        trace
        for trace in told
        if trace.ledger in {None, own}
        or (trace.line and trace.line.get("population") in people)
    ]


def _refuse_other(
    file: Path, told: Sequence[Trace], copy: Ledger, accounts: Accounts
) -> None:
    """Refuse a ledger that never was this project's: UserError."""
    origins = {trace.line.get("ledger") for trace in told if trace.line}
    heads = {trace.head for trace in told if trace.head}
    if copy.origin() in origins or any(map(copy.knows, heads)):
        return
    theirs = {entry.population for entry in copy.entries()}
    if told or (theirs and not theirs & accounts.populations):
        whose = f" of population {', '.join(sorted(theirs))}" if theirs else ""
        raise UserError(
            f"{file} is another ledger{whose}: it knows nothing of what was released"
            " here. Nothing was changed. Name a backup of this project's ledger."
        )


def _enter(
    made: Path, entered: Sequence[Lost], told: Sequence[Trace], accounts: Accounts
) -> None:
    """Let the copy know all that is told; afterwards nothing of it is unknown."""
    with Restoring(made) as copy:
        confirmed = {t.release for t in told if t.left or _settled(t)}
        for entry in copy.entries():
            if entry.state == "reserved" and entry.release in confirmed:
                copy.spend(entry.release)
        for one in entered:
            _enter_one(copy, one, accounts)
        for head in {trace.head for trace in told if trace.head}:
            copy.accept(head)
    with Ledger(made) as copy:
        left = [*evidence.unknown(told, copy), *copy.problems()]
    if left:
        raise InternalError(f"a restored ledger is not sound: {left[0]}")


def _settled(trace: Trace) -> bool:
    line = trace.line or {}
    return line.get("state") in {"confirmed", "spent"}


def _enter_one(copy: Restoring, one: Lost, accounts: Accounts) -> None:
    """Enter a release as spent for its clients, or for everybody where who is lost."""
    if one.population and one.clients is not None:
        budget = one.budget or _most(copy, one.population, accounts)
        of, facts = one.population, one.facts
        copy.take_in(one.release, one.clients, budget, population=of, facts=facts)
        return
    known = {entry.population for entry in copy.entries()} | accounts.populations
    every = [one.population] if one.population else sorted(known)
    for i, population in enumerate(every):
        name = f"{one.release}+{population}" if i else one.release
        budget = one.budget or _most(copy, population, accounts)
        copy.charge_everyone(name, budget, population)


def _most(copy: Restoring, population: str, accounts: Accounts) -> Budget:
    """Return all that a client may spend: by the ledger's cap, or the file's."""
    caps = [c for c in (copy.cap(population), *accounts.caps(population)) if c]
    if not caps:
        raise UserError(
            f"population {population!r} has no cap, so nobody can say what was spent"
            " there. Write `ledger: {per_client: ...}` for a pipeline of it again, as"
            " it was. Nothing was changed."
        )
    return Budget(max(c.epsilon for c in caps), max(c.delta for c in caps))


def _put(made: Path, ledger: Path) -> Path | None:
    """Put the finished file in the ledger's place; return where that one is now.

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
    made.replace(ledger)
    sync_folder(ledger.parent)
    return aside
