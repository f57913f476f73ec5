"""Release session: a message reserved, drawn, published and confirmed exactly once."""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from curvote.base.durable import sync_folder
from curvote.base.errors import UserError
from curvote.base.privacy import Budget, refuse_delta
from curvote.ledger.account import POPULATION
from curvote.ledger.amounts import CONFIRMED, RESERVED, Entry, ReleaseFacts
from curvote.ledger.book import Ledger
from curvote.ledger.register import Register
from curvote.mechanisms.registry import MECHANISMS
from curvote.wire.envelope import Invitation, seal_message
from curvote.wire.strict_json import canonical_json
from curvote.wire.task import AnyTask

Books = tuple[Ledger, Register]


@dataclass(frozen=True)
class ReleasePlace:
    """The files of a release in the outbox, temporary and final.

    ``attempt`` is a random name of the one try that writes there.
    """

    outbox: Path
    release: str
    invitation: str
    attempt: str
    name: str

    @property
    def temporary(self) -> Path:
        """The temporary file that is written first."""
        return self.outbox / f".tmp-{self.release}"

    @property
    def final(self) -> Path:
        """The published file."""
        return self.outbox / self.name


def cancel_release(books: Books, place: ReleasePlace) -> None:
    """Cancel a release that was not published, and remove its file."""
    ledger, register = books
    entry = ledger.entry(place.release)
    if entry is not None and entry.state == RESERVED:
        register.withdraw(place.attempt)
        ledger.cancel(place.release)
    place.temporary.unlink(missing_ok=True)


def recover_releases(books: Books, outbox: Path) -> None:
    """Settle the releases of killed processes, each in its outbox.

    Under its lock nobody is alive there; one lock at a time, so that none waits for us.
    """
    ledger, folder = books[0], outbox.resolve()

    def unsettled() -> Iterator[tuple[Entry, Path]]:
        for entry in ledger.entries(POPULATION):
            if entry.state == RESERVED and "outbox" in entry.facts:
                # The outbox of the release; this one if that was moved.
                recorded = Path(str(entry.facts["outbox"]))
                yield entry, recorded if recorded.exists() else folder

    for home in {place for _, place in unsettled()}:
        with lock_outbox(home):
            for entry, place in unsettled():
                if place == home:
                    _settle_killed(books, entry, home)


def _settle_killed(books: Books, entry: Entry, home: Path) -> None:
    invitation = str(entry.facts["invitation"])
    attempt = str(entry.facts.get("attempt", entry.release))
    name = str(entry.facts.get("file", f"{invitation}.json"))
    place = ReleasePlace(home, entry.release, invitation, attempt, name)
    if place.final.exists():
        sync_folder(home)
        confirm_release(books[0], entry.release, place.final)
    elif place.temporary.exists():
        cancel_release(books, place)
    else:
        why = "reserved, but neither file is in the outbox"
        books[0].mark_spent(entry.release, why)


def confirm_release(ledger: Ledger, release_: str, final: Path) -> None:
    """Confirm in the ledger that a release stands in the file ``final``."""
    digest = hashlib.sha256(final.read_bytes()).hexdigest()
    ledger.confirm(release_, place=str(final), digest=digest)


@contextmanager
def lock_outbox(outbox: Path) -> Iterator[None]:
    """Hold the lock of an outbox."""
    try:
        outbox.mkdir(parents=True, exist_ok=True)
        with (outbox / ".lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UserError(f"the outbox {outbox}: {error.strerror or error}.") from error


Draw = Callable[[], dict[str, Any]]
Settle = Callable[[Ledger], None]
_NO_FACTS: ReleaseFacts = MappingProxyType({})
# So many messages go through each step of their releases together.
BATCH = 200
NEW_RELEASE_HINT = "--new-release draws anew, if the cap has room for it."


@dataclass(frozen=True)
class Answer:
    """A message to release: how to draw it, its invitation and its sender.

    It is the sender's release of that ``number`` for a task. ``clients`` are the ids of
    those whom it is about, () for the sender itself; each of them is charged.
    """

    draw: Draw
    invitation: Invitation
    sender: str
    number: int
    clients: Sequence[str] = ()


def release_message(
    draw: Draw,
    *,
    task: AnyTask,
    invitation: Invitation,
    sender: str,
    number: int,
    books: Books,
    outbox: Path,
    clients: Sequence[str] = (),
    facts: ReleaseFacts = _NO_FACTS,
    seal_to: str | None = None,
    settle: Settle | None = None,
) -> Path:
    """Publish a message for ``task`` and return the path of its envelope.

    The case of one of `release_messages`.
    """
    answer = Answer(draw, invitation, sender, number, clients)
    options: dict[str, Any] = {"facts": facts, "seal_to": seal_to, "settle": settle}
    paths = release_messages([answer], task=task, books=books, outbox=outbox, **options)
    return paths[0]


def release_messages(
    answers: Iterable[Answer],
    *,
    task: AnyTask,
    books: Books,
    outbox: Path,
    facts: ReleaseFacts = _NO_FACTS,
    seal_to: str | None = None,
    settle: Settle | None = None,
) -> list[Path]:
    """Publish messages for ``task`` and return the paths of their envelopes.

    ``draw`` is called at most once in the life of (task, sender, ``number``). A repeat
    returns the same file, draws nothing and spends nothing, whatever its invitation,
    and whatever records it would be about by now. ``books`` are the sender's ledger, to
    whose cap all that was released about each client is held, this included, and the
    register of its user. Each message is one release by itself: those that were made
    before an error stay.

    ``seal_to`` is the key of the signed task that envelopes are closed to; ``facts``
    are further facts for the ledger. ``settle`` writes down what the owner agreed to,
    in the transaction of the first reservation: what is refused before it settles
    nothing.

    UserError, and nothing is drawn: an invitation to another task, or one used for
    another release, from whatever ledger; no room, or too much delta; a release whose
    file was altered, was sent away, or of which nobody knows whether it left.
    """
    folder, requests = outbox.resolve(), [*answers]
    session = _ReleaseSession(task, books, facts, seal_to, settle)
    for answer in requests:
        named, digest = answer.invitation.task, task.digest()
        if named != digest:
            raise UserError(
                f"the invitation is to task {named[:12]}, but the task is"
                f" {digest[:12]}; they belong to different rounds."
            )
    recover_releases(books, folder)
    with lock_outbox(folder):
        counting = (e for e in books[0].entries(POPULATION) if e.counts)
        used = {str(entry.facts.get("invitation")) for entry in counting}
        paths = []
        for i in range(0, len(requests), BATCH):
            paths += session.release_batch(requests[i : i + BATCH], folder, used)
        return paths


@dataclass(frozen=True)
class _Pending:
    """A release to be made: its place, cost, facts and envelope."""

    place: ReleasePlace
    about: Sequence[str]
    budget: Budget
    facts: ReleaseFacts
    make: Callable[[], bytes]


@dataclass(frozen=True)
class _ReleaseSession:
    """A session that releases messages for one task."""

    task: AnyTask
    books: Books
    facts: ReleaseFacts
    seal_to: str | None
    settle: Settle | None

    def release_batch(
        self, answers: Sequence[Answer], folder: Path, used: set[str]
    ) -> list[Path]:
        """Return the envelopes of answers, released now or before."""
        releases: list[Path | _Pending] = []
        for answer in answers:
            entry = find_release(self.books[0], self.task, answer.sender, answer.number)
            if entry:
                releases.append(_check_released(entry, folder))
            else:
                releases.append(self._prepare(answer, folder, used))
        pending = [release for release in releases if isinstance(release, _Pending)]
        if pending:
            self._publish(pending, folder)
        return [r.place.final if isinstance(r, _Pending) else r for r in releases]

    def _publish(self, pending: Sequence[_Pending], folder: Path) -> None:
        """Reserve, draw, write, rename and confirm pending releases.

        The empty files come before the reservations: a reserved release with neither
        file is then one that was published and taken away. Several go through each step
        together, which costs the disk one wait and not one for each.
        """
        books, places = self.books, [item.place for item in pending]
        for place in places:  # of a call killed before it reserved
            place.temporary.unlink(missing_ok=True)
        try:
            for place in places:
                place.temporary.touch(exist_ok=False)
            sync_folder(folder)
            _reserve(pending, books, self.settle)
            for item in pending:
                data = item.make()
                with item.place.temporary.open("wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
        except (UserError, KeyboardInterrupt):
            for place in places:
                cancel_release(books, place)
            raise
        for place in places:
            place.temporary.rename(place.final)
        sync_folder(folder)
        with books[0].transaction_if_many(len(places)):
            for place in places:
                confirm_release(books[0], place.release, place.final)

    def _prepare(self, answer: Answer, folder: Path, used: set[str]) -> _Pending:
        """Return a pending release; nothing is reserved yet."""
        invited, attempt = answer.invitation, secrets.token_hex(16)
        release_ = release_id(self.task, answer.sender, answer.number)
        place = ReleasePlace(folder, release_, invited.id, attempt, invited.file_name)
        if invited.id not in used:
            self.books[1].refuse_answered(invited.id, attempt)
        if invited.id in used or place.final.exists():
            raise UserError(
                "this invitation was used for another release; a server takes one"
                " message an invitation. Ask for a new one."
            )
        used.add(invited.id)
        about = answer.clients or [answer.sender]
        budget = self.task.cost(len(about))
        refuse_delta(budget.delta, len(about))
        facts = {
            **self.facts,
            "task": self.task.digest(),
            "asks": self.task.asks,
            "number": answer.number,
            "invitation": place.invitation,
            "attempt": place.attempt,
            "file": place.name,
            "outbox": str(place.outbox),
        }

        def make() -> bytes:
            plugin = MECHANISMS.origin(self.task.mechanism)
            mark = {"unaudited": plugin} if plugin else {}
            return seal_message(invited, answer.draw(), self.seal_to, **mark)

        return _Pending(place, about, budget, facts, make)


def release_id(task: AnyTask, sender: str, number: int) -> str:
    """Return the digest that identifies a sender's release."""
    return hashlib.sha256(canonical_json([task.digest(), sender, number])).hexdigest()


def latest_number(ledger: Ledger, task: AnyTask, sender: str) -> int:
    """Return the number of the sender's latest release, 0 if none."""
    number = 0
    while ledger.entry(release_id(task, sender, number + 1)) is not None:
        number += 1
    return number


def find_release(
    ledger: Ledger, task: AnyTask, sender: str, number: int
) -> Entry | None:
    """Return the release of that number if it counts, else None."""
    entry = ledger.entry(release_id(task, sender, number))
    return entry if entry is not None and entry.counts else None


def _reserve(pending: Sequence[_Pending], books: Books, settle: Settle | None) -> None:
    """Reserve releases in the ledger, then claim their invitations."""
    ledger, register = books
    with ledger.transaction_if_many(len(pending)):
        if settle is not None:
            settle(ledger)
        for item in pending:
            options: dict[str, Any] = {"population": POPULATION, "facts": item.facts}
            ledger.reserve(item.place.release, item.about, item.budget, **options)
    with register.transaction_if_many(len(pending)):
        for item in pending:
            register.claim(item.place.invitation, item.place.attempt, ledger)


def _check_released(entry: Entry, folder: Path) -> Path:
    """Return the file of a release, checked against its digest."""
    if entry.state == RESERVED:
        raise UserError("another process is making this release now; run again.")
    if entry.state != CONFIRMED:
        raise UserError(
            f"nobody knows whether the release of {entry.reserved} left, so its"
            f" {entry.budget} counts as spent. {NEW_RELEASE_HINT}"
        )
    recorded = Path(str(entry.place))
    for path in (recorded, folder / recorded.name):
        if path.is_file():
            if hashlib.sha256(path.read_bytes()).hexdigest() != entry.digest:
                raise UserError(
                    f"{path} is not what was released: restore it. {NEW_RELEASE_HINT}"
                )
            return path
    raise UserError(
        f"released on {entry.confirmed}, and {recorded} is not there any more; its"
        f" {entry.budget} is spent. {NEW_RELEASE_HINT}"
    )
