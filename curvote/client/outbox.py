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
Settle = Callable[[Ledger], None]
_NOTHING: Facts = MappingProxyType({})
# So many messages go through each step of their releases together.
BATCH = 200
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
    settle: Settle | None = None,
) -> Path:
    """Publish a sender's message for ``task`` in ``outbox`` and return its envelope.

    The case of one of `release_each`.
    """
    answer = Answer(draw, invitation, sender, number, clients)
    given: dict[str, Any] = {"told": told, "seal_to": seal_to, "settle": settle}
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
    settle: Settle | None = None,
) -> list[Path]:
    """Publish messages for ``task`` in ``outbox``, and return their envelopes.

    ``draw`` is called at most once in the life of (task, sender, ``number``). A repeat
    returns the same file, draws nothing and spends nothing, whatever its invitation,
    and whatever records it would be about by now. ``books`` are the sender's ledger, to
    whose cap all that was released about each client is held, this included, and the
    register of its user. Each message is one release by itself: those that were made
    before an error stay.

    ``seal_to`` is the key of the signed task that envelopes are closed to; ``told`` are
    further facts for the ledger. ``settle`` writes down what the owner agreed to, in
    the transaction of the first reservation: what is refused before it settles nothing.

    UserError, and nothing is drawn: an invitation to another task, or one used for
    another release, from whatever ledger; no room, or too much delta; a release whose
    file was altered, was sent away, or of which nobody knows whether it left.
    """
    here, desk = outbox.resolve(), _Desk(task, books, told, seal_to, settle)
    wanted = [*answers]
    for answer in wanted:
        _refuse_other_task(answer.invitation, task)
    recover(books, here)
    with alone(here):
        counting = (e for e in books[0].entries(POPULATION) if e.counts)
        used = {str(entry.facts.get("invitation")) for entry in counting}
        parts = (wanted[i : i + BATCH] for i in range(0, len(wanted), BATCH))
        return [path for part in parts for path in desk.released(part, here, used)]


@dataclass(frozen=True)
class _Begun:
    """A release that is to be made: where, whom it charges what, and its envelope."""

    place: Place
    about: Sequence[str]
    budget: Budget
    facts: Facts
    make: Callable[[], bytes]


@dataclass(frozen=True)
class _Desk:
    """Where messages for one task are released."""

    task: Asked
    books: Books
    told: Facts
    seal_to: str | None
    settle: Settle | None

    def released(
        self, answers: Sequence[Answer], here: Path, used: set[str]
    ) -> list[Path]:
        """Return the envelopes of answers; ``used`` are invitations that were."""
        found = [
            self._known(each, here) or self._begun(each, here, used) for each in answers
        ]
        begun = [one for one in found if isinstance(one, _Begun)]
        if begun:
            _publish(begun, here, self.books, self.settle)
        return [one.place.final if isinstance(one, _Begun) else one for one in found]

    def _known(self, answer: Answer, here: Path) -> Path | None:
        """Return the envelope of what was released before."""
        release_ = release_id(self.task, answer.sender, answer.number)
        known = self.books[0].entry(release_)
        counts = known is not None and known.counts
        return _released(known, here) if known and counts else None

    def _begun(self, answer: Answer, here: Path, used: set[str]) -> _Begun:
        """Return what is to be made; nothing is reserved yet."""
        invited, attempt = answer.invitation, secrets.token_hex(16)
        release_ = release_id(self.task, answer.sender, answer.number)
        place = Place(here, release_, invited.id, attempt, invited.file_name)
        _refuse_used(used, place, self.books[1])
        used.add(invited.id)
        about = answer.clients or [answer.sender]
        budget = self.task.spends(len(about))
        refuse_delta(budget.delta, len(about))
        facts = {**self.told, **_facts(place, self.task, answer.number)}
        return _Begun(
            place, about, budget, facts, partial(_sealed, answer, self.seal_to)
        )


def _sealed(answer: Answer, seal_to: str | None) -> bytes:
    return seal(answer.invitation, answer.draw(), seal_to)


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
    begun: Sequence[_Begun], outbox: Path, books: Books, settle: Settle | None
) -> None:
    """Reserve, draw, write, rename, confirm; a kill between any two is recoverable.

    The empty files come before the reservations: a reserved release with neither file
    is then one that was published and taken away. Several go through each step
    together, which costs the disk one wait and not one for each.
    """
    places = [one.place for one in begun]
    for place in places:  # of a call killed before it reserved
        place.temporary.unlink(missing_ok=True)
    try:
        for place in places:
            place.temporary.touch(exist_ok=False)
        sync_folder(outbox)
        _reserve(begun, books, settle)
        for one in begun:
            _write(one.place.temporary, one.make())
    except (UserError, KeyboardInterrupt):
        for place in places:
            give_back(books, place)
        raise
    for place in places:
        place.temporary.rename(place.final)
    sync_folder(outbox)
    with books[0].together(len(places)):
        for place in places:
            confirm(books[0], place.release, place.final)


def _reserve(begun: Sequence[_Begun], books: Books, settle: Settle | None) -> None:
    """Count releases in the ledger, then claim their invitations for all ledgers."""
    ledger, register = books
    with ledger.together(len(begun)):
        if settle is not None:
            settle(ledger)
        for one in begun:
            given: dict[str, Any] = {"population": POPULATION, "facts": one.facts}
            ledger.reserve(one.place.release, one.about, one.budget, **given)
    with register.together(len(begun)):
        for one in begun:
            register.enter(one.place.invitation, one.place.attempt, ledger)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


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
