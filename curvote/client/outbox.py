"""One sender's release, exactly once: the ledger, the noise and the file in step.

A client is a sender of one record, its own; a server sends about all of its records.

A release is reserved, drawn, written aside, renamed into the outbox (published) and
confirmed, in this order. Whatever kills the process, the next call settles the matter:
published: confirmed; never published: given back; nobody knows: spent.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from curvote.client.ledger import Entry, Facts, Ledger
from curvote.client.ledger_entries import CONFIRMED, RESERVED
from curvote.client.register import Register
from curvote.client.standing import POPULATION
from curvote.durable import sync_folder
from curvote.envelope import Invitation, seal
from curvote.errors import UserError
from curvote.privacy import Budget, refuse_delta
from curvote.strict_json import canonical
from curvote.task import Asked

Draw = Callable[[], dict[str, Any]]
Books = tuple[Ledger, Register]
_NOTHING: Facts = MappingProxyType({})
NEW = "--new-release draws anew, if the cap has room for it."


@dataclass(frozen=True)
class _Place:
    """Where a release is written, and where it is published: never a client's name.

    ``attempt`` is a random name of the one try that writes there.
    """

    outbox: Path
    release: str
    invitation: str
    attempt: str
    name: str

    @property
    def temporary(self) -> Path:
        return self.outbox / f".tmp-{self.release}"

    @property
    def final(self) -> Path:
        return self.outbox / self.name


def release(
    draw: Draw,
    *,
    task: Asked,
    invitation: Invitation,
    sender: str,
    number: int,
    books: Books,
    outbox: Path,
    clients: Sequence[str] = (),
    told: Facts = _NOTHING,
    seal_to: str | None = None,
) -> Path:
    """Publish a sender's message for ``task`` in ``outbox`` and return its envelope.

    ``draw`` returns the noised message; it is called at most once in the life of
    (task, sender, ``number``). A repeat returns the same file, draws nothing and spends
    nothing, whatever its invitation, and whatever records it would be about by now.
    ``clients`` are the ids of those whom the message is about, () for the sender
    itself; each of them is charged. ``books`` are the sender's ledger, to whose cap all
    that was released about each is held, this included, and the register of its user.

    ``seal_to`` is the key of the signed task that envelopes are closed to; ``told`` are
    further facts for the ledger.

    UserError, and nothing is drawn: an invitation to another task, or one used for
    another release, from whatever ledger; no room, or too much delta; a release whose
    file was altered, was sent away, or of which nobody knows whether it left.
    """
    _refuse_other_task(invitation, task)
    here, attempt = outbox.resolve(), secrets.token_hex(16)
    release_ = release_id(task, sender, number)
    place = _Place(here, release_, invitation.id, attempt, invitation.file_name)
    recover(books, here)
    ledger, register = books
    with _alone(here):
        known = ledger.entry(place.release)
        if known is not None and known.counts:
            return _released(known, here)
        _refuse_used(ledger.entries(POPULATION), place, register)
        about, facts = clients or [sender], {**told, **_facts(place, task, number)}
        budget = task.spends(len(about))
        refuse_delta(budget.delta, len(about))
        reserve = partial(_reserve, books, place, about, budget, facts)
        _publish(place, reserve, lambda: seal(invitation, draw(), seal_to), books)
    return place.final


def _reserve(
    books: Books, place: _Place, about: Sequence[str], budget: Budget, facts: Facts
) -> None:
    """Count the release in the ledger, then claim its invitation for all ledgers."""
    ledger, register = books
    ledger.reserve(place.release, about, budget, population=POPULATION, facts=facts)
    register.enter(place.invitation, place.attempt, ledger)


def _refuse_other_task(invitation: Invitation, task: Asked) -> None:
    if invitation.task != task.digest():
        raise UserError(
            f"the invitation is to task {invitation.task[:12]}, but the task is"
            f" {task.digest()[:12]}; they belong to different rounds."
        )


def _facts(place: _Place, task: Asked, number: int) -> dict[str, str | int | float]:
    """Return what recovery, and whoever reads the ledger, must know."""
    return {
        "task": task.digest(),
        "asks": task.asks,
        "number": number,
        "invitation": place.invitation,
        "attempt": place.attempt,
        "file": place.name,
        "outbox": str(place.outbox),
    }


def release_id(task: Asked, sender: str, number: int) -> str:
    """Return the digest that names a sender's release: not whom it is about."""
    return hashlib.sha256(canonical([task.digest(), sender, number])).hexdigest()


def latest(ledger: Ledger, task: Asked, sender: str) -> int:
    """Return the number of the sender's latest release for ``task``, 0 if none."""
    number = 0
    while ledger.entry(release_id(task, sender, number + 1)) is not None:
        number += 1
    return number


def released_before(
    ledger: Ledger, task: Asked, sender: str, number: int
) -> Entry | None:
    """Return the release if it counts, so that `release` will draw nothing for it."""
    known = ledger.entry(release_id(task, sender, number))
    return known if known is not None and known.counts else None


def _publish(
    place: _Place,
    reserve: Callable[[], None],
    make: Callable[[], bytes],
    books: Books,
) -> None:
    """Reserve, draw, write, rename, confirm; a kill between any two is recoverable.

    The empty file comes before the reservation: a reserved release with neither file
    is then one that was published and taken away.
    """
    place.temporary.unlink(missing_ok=True)  # of a call killed before it reserved
    try:
        with place.temporary.open("xb") as stream:
            os.fsync(stream.fileno())
            reserve()
            stream.write(make())
            stream.flush()
            os.fsync(stream.fileno())
    except (UserError, KeyboardInterrupt):
        _give_back(books, place)
        raise
    place.temporary.rename(place.final)
    sync_folder(place.outbox)
    _confirm(books[0], place.release, place.final)


def _give_back(books: Books, place: _Place) -> None:
    """Undo what was not published; the file, which proves it, goes last."""
    ledger, register = books
    entry = ledger.entry(place.release)
    if entry is not None and entry.state == RESERVED:
        register.withdraw(place.attempt)
        ledger.cancel(place.release)
    place.temporary.unlink(missing_ok=True)


def recover(books: Books, outbox: Path) -> None:
    """Settle the releases whose process was killed, each in its outbox.

    Under its lock nobody is alive there; one lock at a time, so that none waits for us.
    """
    ledger, here = books[0], outbox.resolve()
    unsettled = [e for e in ledger.entries(POPULATION) if _open(e)]
    for home in {_home(entry, here) for entry in unsettled}:
        with _alone(home):
            for entry in ledger.entries(POPULATION):
                if _open(entry) and _home(entry, here) == home:
                    _settle(books, entry, home)


def _open(entry: Entry) -> bool:
    return entry.state == RESERVED and "outbox" in entry.facts


def _home(entry: Entry, here: Path) -> Path:
    """Return the outbox that a release began in; one that was moved is ours now."""
    recorded = Path(str(entry.facts["outbox"]))
    return recorded if recorded.exists() else here


def _settle(books: Books, entry: Entry, home: Path) -> None:
    ledger, place = books[0], _place(entry, home)
    if place.final.exists():
        sync_folder(home)
        _confirm(ledger, entry.release, place.final)
    elif place.temporary.exists():
        _give_back(books, place)
    else:
        ledger.spend(entry.release, "reserved, but neither file is in the outbox")


def _place(entry: Entry, home: Path) -> _Place:
    """Return where a release was written; an earlier curvote said less of it."""
    invitation = str(entry.facts["invitation"])
    attempt = str(entry.facts.get("attempt", entry.release))
    name = str(entry.facts.get("file", f"{invitation}.json"))
    return _Place(home, entry.release, invitation, attempt, name)


def _confirm(ledger: Ledger, release_: str, final: Path) -> None:
    digest = hashlib.sha256(final.read_bytes()).hexdigest()
    ledger.confirm(release_, place=str(final), digest=digest)


def _released(entry: Entry, here: Path) -> Path:
    """Return the file of a release that counts, as long as it is what was released."""
    if entry.state == RESERVED:
        raise UserError("another process is making this release now; run again.")
    if entry.state != CONFIRMED:
        raise UserError(
            f"nobody knows whether the release of {entry.reserved} left, so its"
            f" {entry.budget} counts as spent. {NEW}"
        )
    recorded = Path(str(entry.place))
    for path in (recorded, here / recorded.name):
        if path.is_file():
            if hashlib.sha256(path.read_bytes()).hexdigest() != entry.digest:
                raise UserError(f"{path} is not what was released: restore it. {NEW}")
            return path
    raise UserError(
        f"released on {entry.confirmed}, and {recorded} is not there any more; its"
        f" {entry.budget} is spent. {NEW}"
    )


def _refuse_used(entries: list[Entry], place: _Place, register: Register) -> None:
    used = UserError(
        "this invitation was used for another release; a server takes one message"
        " an invitation. Ask for a new one."
    )
    counting = (entry for entry in entries if entry.counts)
    if any(e.facts.get("invitation") == place.invitation for e in counting):
        raise used
    register.refuse_answered(place.invitation, place.attempt)
    if place.final.exists():
        raise used


@contextmanager
def _alone(outbox: Path) -> Iterator[None]:
    """Hold the outbox: what a live process is writing looks like a killed one's."""
    try:
        outbox.mkdir(parents=True, exist_ok=True)
        with (outbox / ".lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UserError(f"the outbox {outbox}: {error.strerror or error}.") from error
