"""Release session: a message reserved, drawn, published and confirmed exactly once."""

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
    unsettled = [e for e in ledger.entries(POPULATION) if _is_unsettled(e)]
    for home in {_release_outbox(entry, folder) for entry in unsettled}:
        with lock_outbox(home):
            for entry in ledger.entries(POPULATION):
                if _is_unsettled(entry) and _release_outbox(entry, folder) == home:
                    _settle_killed(books, entry, home)


def _is_unsettled(entry: Entry) -> bool:
    return entry.state == RESERVED and "outbox" in entry.facts


def _release_outbox(entry: Entry, folder: Path) -> Path:
    """Return the outbox of a release, this one if that was moved."""
    recorded = Path(str(entry.facts["outbox"]))
    return recorded if recorded.exists() else folder


def _settle_killed(books: Books, entry: Entry, home: Path) -> None:
    ledger, place = books[0], _recorded_place(entry, home)
    if place.final.exists():
        sync_folder(home)
        confirm_release(ledger, entry.release, place.final)
    elif place.temporary.exists():
        cancel_release(books, place)
    else:
        ledger.mark_spent(entry.release, "reserved, but neither file is in the outbox")


def _recorded_place(entry: Entry, home: Path) -> ReleasePlace:
    """Return the place of a release from the facts of its entry."""
    invitation = str(entry.facts["invitation"])
    attempt = str(entry.facts.get("attempt", entry.release))
    name = str(entry.facts.get("file", f"{invitation}.json"))
    return ReleasePlace(home, entry.release, invitation, attempt, name)


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
