"""Privacy ledger: the durable record of all releases, its restoring and backups.

Nobody asks for room here: what left has left. Every function runs inside a transaction
that its caller has begun.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from curvote.base.durable import journal_paths, sync_folder
from curvote.base.errors import InternalError, UserError
from curvote.base.privacy import Budget
from curvote.ledger import amounts, chain, queries, reservation, schema
from curvote.ledger.amounts import Amount, ReleaseFacts
from curvote.ledger.cohort import ClientIds, Cohort
from curvote.ledger.queries import LedgerReader
from curvote.ledger.reservation import NewRelease
from curvote.ledger.schema import LEDGER

RESTORED_REASON: Final = "the restored ledger did not know it"
_EVERYONE_FACTS: Final[ReleaseFacts] = {"everyone": 1}


class RestoringLedger(LedgerReader):
    """A copy of a ledger that is about to replace the ledger."""

    def enter_spent(
        self,
        release: str,
        clients: ClientIds,
        budget: Budget,
        *,
        population: str,
        facts: ReleaseFacts,
    ) -> None:
        """Insert a release as spent for these ``clients``.

        Who of them is new to ``population`` is charged for what concerns everybody in
        it. One that counts already stays as it is.
        """
        cohort = Cohort(clients)
        with self._transaction("IMMEDIATE"):
            if (entry := self.entry(release)) and entry.counts:
                return
            charge_newcomers(self._db, population, cohort)
            about = release, population, Amount.from_budget(budget)
            _insert_spent(self._db, NewRelease(*about, None, facts), cohort)

    def charge_everyone(self, release: str, budget: Budget, population: str) -> None:
        """Insert a release as spent for every client of ``population``.

        Whoever comes later is charged, too: nobody knows whether they were in it. Told
        again it costs nobody more.
        """
        amount = Amount.from_budget(budget)
        value = {"population": population, "amount": amount.to_texts()}
        with self._transaction("IMMEDIATE"):
            name = f"{amounts.EVERYONE_SETTING}{release}"
            if self.setting(name) is not None:
                return
            _insert_setting(self._db, name, json.dumps(value))
            clients = list(reservation.all_clients(self._db, population))
            if clients:
                about = NewRelease(release, population, amount, None, _EVERYONE_FACTS)
                _insert_spent(self._db, about, Cohort(clients))

    def restore_caps(self, caps: Mapping[str, Budget]) -> None:
        """Set the caps of populations that have none here."""
        with self._transaction("IMMEDIATE"):
            for population in sorted(caps.keys() - chain.read_caps(self._db)):
                amount = Amount.from_budget(caps[population])
                reservation.write_population_cap(self._db, population, amount)

    def mark_spent(self, release: str) -> None:
        """Count a reserved release for ever."""
        with self._transaction("IMMEDIATE"):
            _settle_spent(self._db, release)

    def accept_head(self, head: str) -> None:
        """Accept a lost head of the chain as known."""
        with self._transaction("IMMEDIATE"):
            if not self.knows(head):
                name = f"{amounts.KNOWN_HEAD_SETTING}{head}"
                _insert_setting(self._db, name, RESTORED_REASON)


def charge_newcomers(db: sqlite3.Connection, population: str, cohort: Cohort) -> None:
    """Charge newcomers to a population for releases about everybody."""
    query = "SELECT name, value FROM settings WHERE name LIKE ? || '%'"
    rows = db.execute(query, (amounts.EVERYONE_SETTING,)).fetchall()
    settings = [(name, json.loads(value)) for name, value in rows]
    matching = [s for s in settings if s[1]["population"] == population]
    new = reservation.find_newcomers(db, population, cohort) if matching else []
    for setting, value in matching if new else []:
        release = setting.removeprefix(amounts.EVERYONE_SETTING)
        like = "SELECT count(*) FROM releases WHERE release LIKE ? || '+%'"
        (times,) = db.execute(like, (release,)).fetchone()
        name, amount = f"{release}+{times + 1}", Amount.from_texts(*value["amount"])
        about = NewRelease(name, population, amount, None, _EVERYONE_FACTS)
        _insert_spent(db, about, Cohort(new))


def _insert_spent(db: sqlite3.Connection, release: NewRelease, cohort: Cohort) -> None:
    reservation.enter_release(db, release, cohort)
    _settle_spent(db, release.name)


def _settle_spent(db: sqlite3.Connection, release: str) -> None:
    reservation.settle_release(db, release, amounts.SPENT, reason=RESTORED_REASON)


def _insert_setting(db: sqlite3.Connection, name: str, value: str) -> None:
    db.execute("INSERT INTO settings VALUES (?, ?)", (name, value))
    chain.append_event(db, "setting", name, value=value)


class Ledger(LedgerReader):
    """The ledger in the SQLite file ``path``, which is created if there is none.

    Any number of processes may use one file at a time, each through a Ledger of its
    own (one thread each, never across a fork). A file that is damaged, foreign, newer
    or cannot be written is a UserError, at opening or later; a call that fails has
    changed nothing.

    Clients are known by their id within a population. Ids are compared as text, as
    `curvote.base.text.normalise_id` spells it: 7, " 7" and "7.0" are one client, "07"
    is another. The same person in two populations is two clients.
    """

    # SQLite's number of others' writes when all entries were last found to add up.
    _verified_writes: int | None = None

    def close(self) -> None:
        """Close the file, and record whether its entries were verified.

        Closing twice is no error.
        """
        top = None
        with suppress(sqlite3.Error):  # it is closed already
            if self._verified_writes == self._external_writes():
                top = chain.chain_top(self._db)
        super().close()
        if top is not None:
            with suppress(OSError):
                schema.stamp_verified(self.path, top)

    def set_cap(self, population: str, cap: Budget) -> None:
        """Set the cap of a population, once and for all.

        Again with the same cap: nothing happens. Another one: UserError; only
        `raise_cap` changes it.
        """
        if not population:
            raise UserError("a cap needs a population; its name is empty.")
        wanted = Amount.from_budget(cap)
        with self._transaction("IMMEDIATE"):
            current = reservation.read_cap(self._db, population)
            if current is None:
                reservation.write_population_cap(self._db, population, wanted)
            elif current != wanted:
                raise UserError(
                    f"the cap of population {population!r} was set to {current}, once;"
                    f" it cannot become {cap}. `raise-cap` raises it."
                )

    def raise_cap(self, population: str, cap: Budget) -> None:
        """Raise the cap of a population, recorded in the chain.

        UserError: a cap that lies below in either part, or is the same.
        """
        wanted = Amount.from_budget(cap)
        with self._transaction("IMMEDIATE"):
            current = reservation.read_cap(self._db, population)
            if current is None:
                raise UserError(
                    f"population {population!r} has no cap yet that could be raised."
                )
            if not wanted.at_least(current) or wanted == current:
                raise UserError(
                    f"the cap of population {population!r} is {current}; {cap} does not"
                    " raise it, and a cap is never lowered."
                )
            reservation.write_population_cap(self._db, population, wanted)

    def store_setting(self, name: str, value: str) -> None:
        """Store a setting for ever; another value later is a UserError."""
        if not name:
            raise InternalError("a setting has no name")
        with self._transaction("IMMEDIATE"):
            current = self.setting(name)
            if current is None:
                _insert_setting(self._db, name, value)
            elif current != value:
                raise UserError(
                    f"the ledger says {name} is {current!r}, once and for all; it"
                    f" cannot become {value!r}."
                )

    def reserve(
        self,
        release: str,
        clients: ClientIds,
        budget: Budget,
        *,
        population: str,
        facts: ReleaseFacts,
        limit: Budget | None = None,
    ) -> None:
        """Reserve ``budget`` for every client, or for none if one lacks room.

        ``release`` is the digest that names the release, ``clients`` the ids (n,), each
        once, as one array or sequence or an iterable of arrays. Every client's total in
        ``population``, this release included, must stay within the population's cap,
        epsilon and delta each (sequential composition), exact up to 1e-10 and 1e-18,
        and within ``limit``, which can only be the lower
        of the two. Otherwise, without a cap (`set_cap`), and for ids that are empty or
        repeated: UserError; so is a ledger whose entries do not add up to its totals,
        as they are changed by nobody but who reserves. ``facts`` are small and public.
        A cancelled release may be reserved again; one that counts is an InternalError.
        """
        if not population or not release:
            raise UserError("a release needs a name and a population; one is empty.")
        cohort = Cohort(clients)
        amount = Amount.from_budget(budget)
        with self._transaction("IMMEDIATE"):
            self._verify_sums()
            cap = reservation.read_cap(self._db, population)
            if cap is None:
                raise UserError(
                    f"the ledger has no cap for population {population!r}; nothing is"
                    " released before one is set."
                )
            cap = cap.least(Amount.from_budget(limit)) if limit else cap
            previous = self.entry(release)
            if previous and previous.counts:
                raise InternalError(f"release {release} is {previous.state} already")
            charge_newcomers(self._db, population, cohort)
            entering = NewRelease(release, population, amount, cap, facts)
            before = reservation.enter_release(self._db, entering, cohort)
            reservation.check_room(before, amount, cap, population)

    def confirm(self, release: str, *, place: str, digest: str) -> None:
        """Record that a reserved release was published at ``place``.

        ``digest`` names the published bytes. Again with the same place and digest:
        nothing happens. Any other state, place or digest: InternalError.
        """
        with self._transaction("IMMEDIATE"):
            entry = self.entry(release)
            if entry and (entry.place, entry.digest) == (place, digest):
                return
            self._settle_release(release, amounts.CONFIRMED, place=place, digest=digest)

    def cancel(self, release: str) -> None:
        """Cancel a reserved release whose noise was never published."""
        with self._transaction("IMMEDIATE"):
            number, amount = self._settle_release(release, amounts.CANCELLED)
            before = reservation.release_balances(self._db, number)
            steps = {b.id: b.amount.minus(amount) for b in before}
            reservation.move_totals(self._db, number, steps)

    def mark_spent(self, release: str, reason: str) -> None:
        """Count a reserved release for ever, as its fate is unknown.

        Any other state: InternalError.
        """
        with self._transaction("IMMEDIATE"):
            self._settle_release(release, amounts.SPENT, reason=reason)

    def _verify_sums(self) -> None:
        """Refuse a ledger whose entries do not add up to its totals."""
        writes = self._external_writes()
        if self._verified_writes == writes:
            return
        first = self._verified_writes is None
        if not (first and schema.is_verified(self._db, self.path)):
            disagreements = queries.find_disagreements(self._db)
            if disagreements:
                raise UserError(
                    f"the ledger {self.path} is not what was entered:"
                    f" {disagreements[0]}. Nothing was reserved; `curvote ledger check`"
                    f" says all. {LEDGER.way_out}."
                )
        self._verified_writes = writes

    def _external_writes(self) -> int:
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def _settle_release(
        self, release: str, state: str, **how: str
    ) -> tuple[int, Amount]:
        """Move a release out of the state reserved; return number and amount."""
        done = reservation.settle_release(self._db, release, state, **how)
        if done is None:
            entry = self.entry(release)
            now = f"is {entry.state}" if entry else "is not in the ledger"
            raise InternalError(f"release {release} {now}: it cannot become {state}")
        return done


def open_existing(path: Path) -> Ledger | None:
    """Open a ledger for reading; None where there is no file."""
    present = os.path.lexists(path) or journal_paths(path)
    return Ledger(path) if present else None


def back_up_ledger(ledger: Path, out: Path) -> tuple[int, str]:
    """Copy the ledger to the file ``out``, complete and checked.

    Others may write meanwhile: the copy is of one moment. Its owner alone may read it.
    ``out`` may be an earlier backup of this ledger, which it replaces; anything else of
    that name stays, and is a UserError, as is a ledger that is not sound. Returns the
    place and link of the newest entry that the copy holds.
    """
    if out.exists() and out.samefile(ledger):
        raise UserError(f"{out} is the ledger itself; name a file elsewhere.")
    with (
        LEDGER.errors(out),
        open_existing(ledger) or nullcontext(),  # held open: others may begin to write
        checked_copy(ledger, out.absolute().parent) as copied,
    ):
        with Ledger(copied) as copy:
            top = copy.top()
            if os.path.lexists(out) and not _is_earlier(out, copy):
                raise UserError(
                    f"{out} is there and no earlier backup of this ledger: it stays as"
                    " it is. Name another file."
                )
        merge_journal(copied)
        copied.replace(out)
        sync_folder(out.absolute().parent)
    return top


def _is_earlier(out: Path, copy: Ledger) -> bool:
    try:
        with (
            checked_copy(out, copy.path.parent, deep=False) as copied,
            Ledger(copied) as old,
        ):
            return old.origin() == copy.origin() and copy.knows(old.head())
    except UserError:
        return False


@contextmanager
def checked_copy(file: Path, folder: Path, *, deep: bool = True) -> Iterator[Path]:
    """Yield a checked copy of a ledger in a temporary folder.

    ``file`` is read only. UserError: it is no ledger, or (``deep``) it is not sound:
    its pages, sums and chain.
    """
    if not file.is_file():
        raise UserError(f"{file}: there is no such file.")
    with TemporaryDirectory(prefix=f".{file.name}-", dir=folder) as temporary:
        copied = Path(temporary) / file.name
        with LEDGER.errors(file):
            _copy_pages(file, copied)
        try:
            with Ledger(copied) as ledger:
                problems = ledger.problems() if deep else []
        except UserError as error:
            raise UserError(str(error).replace(str(copied), str(file))) from None
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise UserError(f"the ledger {file} is not sound: {problems[0]}{more}.")
        yield copied


def _copy_pages(file: Path, target_path: Path) -> None:
    """Copy all pages of a ledger as of one moment, with its journal."""
    # Without a journal nothing may be written beside the file.
    still = "" if journal_paths(file) else "&immutable=1"
    uri = f"{file.absolute().as_uri()}?mode=ro{still}"
    target_path.touch(mode=0o600)
    with (
        closing(sqlite3.connect(uri, uri=True)) as source,
        closing(sqlite3.connect(target_path)) as target,
    ):
        source.backup(target)


def merge_journal(path: Path) -> None:
    """Merge the journal into the file and flush it to the disk.

    UserError: what its journal holds cannot be written into it.
    """
    with LEDGER.errors(path):
        with closing(sqlite3.connect(path, timeout=0)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
