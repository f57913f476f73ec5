"""The privacy ledger: the durable record of what was released about each client.

A release is reserved before its noise is drawn and counts from then on; it is confirmed
when it was published, cancelled if its noise never left, and spent if nobody knows.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from curvote.client import (
    ledger_chain,
    ledger_problems,
    ledger_rows,
    ledger_stamp,
    ledger_told,
)
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_cohort import Clients, Cohort
from curvote.client.ledger_counting import Release
from curvote.client.ledger_entries import (
    CANCELLED,
    CONFIRMED,
    SPENT,
    Entry,
    Facts,
    Spent,
    total,
)
from curvote.client.ledger_reading import LedgerReader
from curvote.client.ledger_schema import LEDGER
from curvote.durable import journals
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget

__all__ = ["Clients", "Entry", "Facts", "Ledger", "Spent", "existing", "total"]


class Ledger(LedgerReader):
    """The ledger in the SQLite file ``path``, which is created if there is none.

    Any number of processes may use one file at a time, each through a Ledger of its
    own (one thread each, never across a fork). A file that is damaged, foreign, newer
    or cannot be written is a UserError, at opening or later; a call that fails has
    changed nothing.

    Clients are known by their id within a population. Ids are compared as text, as
    `curvote.identifier.normal` spells it: 7, " 7" and "7.0" are one client, "07" is
    another. The same person in two populations is two clients.
    """

    # SQLite's number of others' writes when all entries were last found to add up.
    _added_up: int | None = None

    def close(self) -> None:
        """Close the file, and write down that its entries add up, if they were seen to.

        Closing twice is no error.
        """
        top = None
        with suppress(sqlite3.Error):  # it is closed already
            if self._added_up == self._writes_of_others():
                top = ledger_chain.top(self._db)
        super().close()
        if top is not None:
            with suppress(OSError):
                ledger_stamp.keep_added_up(self.path, top)

    def set_up(self, population: str, cap: Budget) -> None:
        """Set the cap of a population for ever: the most that a client may spend in it.

        Again with the same cap: nothing happens. Another one: UserError; only
        `raise_cap` changes it.
        """
        if not population:
            raise UserError("a cap needs a population; its name is empty.")
        with self._transaction("IMMEDIATE"):
            known = ledger_rows.cap(self._db, population)
            if known is None:
                ledger_rows.set_cap(self._db, population, Amount.of(cap))
            elif known != Amount.of(cap):
                raise UserError(
                    f"the cap of population {population!r} was set to {known}, once; it"
                    f" cannot become {cap}. `raise-cap` raises it."
                )

    def raise_cap(self, population: str, cap: Budget) -> None:
        """Raise the cap of a population that has one; the chain says so for ever.

        UserError: a cap that lies below in either part, or is the same.
        """
        with self._transaction("IMMEDIATE"):
            known, wanted = ledger_rows.cap(self._db, population), Amount.of(cap)
            if known is None:
                raise UserError(
                    f"population {population!r} has no cap yet that could be raised."
                )
            if not wanted.at_least(known) or wanted == known:
                raise UserError(
                    f"the cap of population {population!r} is {known}; {cap} does not"
                    " raise it, and a cap is never lowered."
                )
            ledger_rows.set_cap(self._db, population, wanted)

    def settle_once(self, name: str, value: str) -> None:
        """Write a setting for ever: again with the same value nothing happens.

        Another value: UserError.
        """
        if not name:
            raise InternalError("a setting has no name")
        with self._transaction("IMMEDIATE"):
            known = self.setting(name)
            if known is None:
                self._db.execute("INSERT INTO settings VALUES (?, ?)", (name, value))
                ledger_chain.append(self._db, "setting", name, value=value)
            elif known != value:
                raise UserError(
                    f"the ledger says {name} is {known!r}, once and for all; it cannot"
                    f" become {value!r}."
                )

    def reserve(
        self,
        release: str,
        clients: Clients,
        budget: Budget,
        *,
        population: str,
        facts: Facts,
        limit: Budget | None = None,
    ) -> None:
        """Count ``budget`` for every client, or for none if one of them lacks room.

        ``release`` is the digest that names the release, ``clients`` the ids (n,), each
        once, as one array or sequence or an iterable of arrays. Every client's total in
        ``population``, this release included, must stay within the population's cap,
        epsilon and delta each (sequential composition), exact up to 1e-10 and 1e-18,
        and within ``limit``, which can only be the lower
        of the two. Otherwise, without a cap (`set_up`), and for ids that are empty or
        repeated: UserError; so is a ledger whose entries do not add up to its totals,
        as they are changed by nobody but who reserves. ``facts`` are small and public.
        A cancelled release may be reserved again; one that counts is an InternalError.
        """
        if not population or not release:
            raise UserError("a release needs a name and a population; one is empty.")
        cohort = Cohort(clients)
        need = Amount.of(budget)
        with self._transaction("IMMEDIATE"):
            self._refuse_disagreements()
            cap = self._known_cap(population)
            cap = cap.least(Amount.of(limit)) if limit else cap
            found = self.entry(release)
            if found and found.counts:
                raise InternalError(f"release {release} is {found.state} already")
            ledger_told.charge_newcomers(self._db, population, cohort)
            entering = Release(release, population, need, cap, facts)
            before = ledger_rows.enter(self._db, entering, cohort)
            ledger_rows.check_room(before, need, cap, population)

    def confirm(self, release: str, *, place: str, digest: str) -> None:
        """Record that a reserved release was published at ``place``.

        ``digest`` names the published bytes. Again with the same place and digest:
        nothing happens. Any other state, place or digest: InternalError.
        """
        with self._transaction("IMMEDIATE"):
            found = self.entry(release)
            if found and (found.place, found.digest) == (place, digest):
                return
            self._settle(release, CONFIRMED, place=place, digest=digest)

    def cancel(self, release: str) -> None:
        """Give a reserved release back, as its noise never left; else InternalError."""
        with self._transaction("IMMEDIATE"):
            number, amount = self._settle(release, CANCELLED)
            before = ledger_rows.balances(self._db, number)
            steps = {b.id: b.amount.minus(amount) for b in before}
            ledger_rows.move(self._db, number, steps)

    def spend(self, release: str, reason: str) -> None:
        """Let a reserved release count for ever, as nobody knows whether it left.

        Any other state: InternalError.
        """
        with self._transaction("IMMEDIATE"):
            self._settle(release, SPENT, reason=reason)

    def _refuse_disagreements(self) -> None:
        """Add all up again, unless that was done and nobody else has written since."""
        writes = self._writes_of_others()
        if self._added_up == writes:
            return
        first = self._added_up is None
        if not (first and ledger_stamp.is_added_up(self._db, self.path)):
            found = ledger_problems.disagreements(self._db)
            if found:
                raise UserError(
                    f"the ledger {self.path} is not what was entered: {found[0]}."
                    " Nothing was reserved; `curvote ledger check` says all."
                    f" {LEDGER.way_out}."
                )
        self._added_up = writes

    def _writes_of_others(self) -> int:
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def _known_cap(self, population: str) -> Amount:
        cap = ledger_rows.cap(self._db, population)
        if cap is None:
            raise UserError(
                f"the ledger has no cap for population {population!r}; nothing is"
                " released before one is set."
            )
        return cap

    def _settle(self, release: str, state: str, **how: str) -> tuple[int, Amount]:
        """Leave the state reserved; return the release's number and budget."""
        done = ledger_rows.settle(self._db, release, state, **how)
        if done is None:
            found = self.entry(release)
            now = f"is {found.state}" if found else "is not in the ledger"
            raise InternalError(f"release {release} {now}: it cannot become {state}")
        return done


def existing(path: Path) -> Ledger | None:
    """Open a ledger to look into it; None, and no new file, where there is none."""
    left = os.path.lexists(path) or journals(path)
    return Ledger(path) if left else None
