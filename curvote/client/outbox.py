"""One sender's release, exactly once: the ledger, the noise and the file in step.

A client is a sender of one record, its own; a server sends about all of its records.

A release is reserved, drawn, written aside, renamed into the outbox (published) and
confirmed, in this order. Whatever kills the process, the next call settles the matter:
published: confirmed; never published: given back; nobody knows: spent.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from curvote.client.ledger import Entry, Facts, Ledger
from curvote.client.ledger_entries import CONFIRMED, RESERVED
from curvote.client.register import Register
from curvote.client.settling import Books, Place, alone, confirm, give_back, recover
from curvote.client.standing import POPULATION
from curvote.durable import sync_folder
from curvote.envelope import Invitation, seal
from curvote.errors import UserError
from curvote.privacy import Budget, refuse_delta
from curvote.strict_json import canonical
from curvote.task import Asked

__all__ = ["Answer", "Books", "latest", "recover", "release", "release_each"]

Draw = Callable[[], dict[str, Any]]
_NOTHING: Facts = MappingProxyType({})
NEW = "--new-release draws anew, if the cap has room for it."


@dataclass(frozen=True)
class Answer:
    """A message to release: ``draw`` returns it, noised, and ``sender`` sends it.

    It is the sender's release of that ``number`` for a task. ``clients`` are the ids of
    those whom it is about, () for the sender itself; each of them is charged.
    """

    draw: Draw
    invitation: Invitation
    sender: str
    number: int
    clients: Sequence[str] = ()


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

    The case of one of `release_each`.
    """
    answer = Answer(draw, invitation, sender, number, clients)
    given: dict[str, Any] = {"told": told, "seal_to": seal_to}
    (path,) = release_each([answer], task=task, books=books, outbox=outbox, **given)
    return path


def release_each(
    answers: Iterable[Answer],
    *,
    task: Asked,
    books: Books,
    outbox: Path,
    told: Facts = _NOTHING,
    seal_to: str | None = None,
) -> list[Path]:
    """Publish messages for ``task`` in ``outbox``, and return their envelopes.

    ``draw`` is called at most once in the life of (task, sender, ``number``). A repeat
    returns the same file, draws nothing and spends nothing, whatever its invitation,
    and whatever records it would be about by now. ``books`` are the sender's ledger, to
    whose cap all that was released about each client is held, this included, and the
    register of its user. Each message is one release by itself: those that were made
    before an error stay.

    ``seal_to`` is the key of the signed task that envelopes are closed to; ``told`` are
    further facts for the ledger.

    UserError, and nothing is drawn: an invitation to another task, or one used for
    another release, from whatever ledger; no room, or too much delta; a release whose
    file was altered, was sent away, or of which nobody knows whether it left.
    """
    here, desk = outbox.resolve(), _Desk(task, books, told, seal_to)
    wanted = [*answers]
    for answer in wanted:
        _refuse_other_task(answer.invitation, task)
    recover(books, here)
    with alone(here):
        counting = (e for e in books[0].entries(POPULATION) if e.counts)
        used = {str(entry.facts.get("invitation")) for entry in counting}
        return [desk.released(answer, here, used) for answer in wanted]


@dataclass(frozen=True)
class _Desk:
    """Where messages for one task are released, one after the other."""

    task: Asked
    books: Books
    told: Facts
    seal_to: str | None

    def released(self, answer: Answer, here: Path, used: set[str]) -> Path:
        """Return the envelope of an answer; ``used`` are invitations that were."""
        invited, attempt = answer.invitation, secrets.token_hex(16)
        release_ = release_id(self.task, answer.sender, answer.number)
        known = self.books[0].entry(release_)
        if known is not None and known.counts:
            return _released(known, here)
        place = Place(here, release_, invited.id, attempt, invited.file_name)
        _refuse_used(used, place, self.books[1])
        about = answer.clients or [answer.sender]
        facts = {**self.told, **_facts(place, self.task, answer.number)}
        budget = self.task.spends(len(about))
        refuse_delta(budget.delta, len(about))
        reserve = partial(_reserve, self.books, place, about, budget, facts)
        make = partial(_sealed, answer, self.seal_to)
        _publish(place, reserve, make, self.books)
        used.add(invited.id)
        return place.final


def _sealed(answer: Answer, seal_to: str | None) -> bytes:
    return seal(answer.invitation, answer.draw(), seal_to)


def _reserve(
    books: Books, place: Place, about: Sequence[str], budget: Budget, facts: Facts
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


def _facts(place: Place, task: Asked, number: int) -> dict[str, str | int | float]:
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
    place: Place,
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
        give_back(books, place)
        raise
    place.temporary.rename(place.final)
    sync_folder(place.outbox)
    confirm(books[0], place.release, place.final)


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


def _refuse_used(answered: set[str], place: Place, register: Register) -> None:
    used = UserError(
        "this invitation was used for another release; a server takes one message"
        " an invitation. Ask for a new one."
    )
    if place.invitation in answered:
        raise used
    register.refuse_answered(place.invitation, place.attempt)
    if place.final.exists():
        raise used
