"""Where a release is written and published, and how a killed one is settled."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from curvote.client.ledger import Entry, Ledger
from curvote.client.ledger_entries import RESERVED
from curvote.client.register import Register
from curvote.client.standing import POPULATION
from curvote.durable import sync_folder
from curvote.errors import UserError

Books = tuple[Ledger, Register]


@dataclass(frozen=True)
class Place:
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
        """The file that is written aside."""
        return self.outbox / f".tmp-{self.release}"

    @property
    def final(self) -> Path:
        """The file that is published."""
        return self.outbox / self.name


def give_back(books: Books, place: Place) -> None:
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
        with alone(home):
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
        confirm(ledger, entry.release, place.final)
    elif place.temporary.exists():
        give_back(books, place)
    else:
        ledger.spend(entry.release, "reserved, but neither file is in the outbox")


def _place(entry: Entry, home: Path) -> Place:
    """Return where a release was written; an earlier curvote said less of it."""
    invitation = str(entry.facts["invitation"])
    attempt = str(entry.facts.get("attempt", entry.release))
    name = str(entry.facts.get("file", f"{invitation}.json"))
    return Place(home, entry.release, invitation, attempt, name)


def confirm(ledger: Ledger, release_: str, final: Path) -> None:
    """Record in the ledger that a release stands in the file ``final``."""
    digest = hashlib.sha256(final.read_bytes()).hexdigest()
    ledger.confirm(release_, place=str(final), digest=digest)


@contextmanager
def alone(outbox: Path) -> Iterator[None]:
    """Hold the outbox: what a live process is writing looks like a killed one's."""
    try:
        outbox.mkdir(parents=True, exist_ok=True)
        with (outbox / ".lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UserError(f"the outbox {outbox}: {error.strerror or error}.") from error
