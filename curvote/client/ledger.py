"""Privacy ledger: the durable record of all releases about each client.

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
from curvote.client.ledger_cohort import ClientIds, Cohort
from curvote.client.ledger_counting import NewRelease
from curvote.client.ledger_entries import (
    CANCELLED,
    CONFIRMED,
    SPENT,
    Entry,
    ReleaseFacts,
    SpentTotals,
    sum_entries,
)
from curvote.client.ledger_reading import LedgerReader
from curvote.client.ledger_schema import LEDGER
from curvote.durable import journal_paths
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget

__all__ = [
    "ClientIds",
    "Entry",
    "Ledger",
    "ReleaseFacts",
    "SpentTotals",
    "open_existing",
    "sum_entries",
]


class Ledger(LedgerReader):
    """The ledger in the SQLite file ``path``, which is created if there is none.

    Any number of processes may use one file at a time, each through a Ledger of its
    own (one thread each, never across a fork). A file that is damaged, foreign, newer
    or cannot be written is a UserError, at opening or later; a call that fails has
    changed nothing.

    Clients are known by their id within a population. Ids are compared as text, as
    `curvote.identifier.normalise_id` spells it: 7, " 7" and "7.0" are one client, "07"
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
                top = ledger_chain.chain_top(self._db)
        super().close()
        if top is not None:
            with suppress(OSError):
                ledger_stamp.stamp_verified(self.path, top)

    def set_cap(self, population: str, cap: Budget) -> None:
        """Set the cap of a population, once and for all.

        Again with the same cap: nothing happens. Another one: UserError; only
        `raise_cap` changes it.
        """
        if not population:
            raise UserError("a cap needs a population; its name is empty.")
        with self._transaction("IMMEDIATE"):
            current = ledger_rows.read_cap(self._db, population)
            if current is None:
                ledger_rows.write_population_cap(
                    self._db, population, Amount.from_budget(cap)
                )
            elif current != Amount.from_budget(cap):
                raise UserError(
                    f"the cap of population {population!r} was set to {current}, once;"
                    " it"
                    f" cannot become {cap}. `raise-cap` raises it."
                )

    def raise_cap(self, population: str, cap: Budget) -> None:
        """Raise the cap of a population, recorded in the chain.

        UserError: a cap that lies below in either part, or is the same.
        """
        with self._transaction("IMMEDIATE"):
            current, wanted = (
                ledger_rows.read_cap(self._db, population),
                Amount.from_budget(cap),
            )
            if current is None:
                raise UserError(
                    f"population {population!r} has no cap yet that could be raised."
                )
            if not wanted.at_least(current) or wanted == current:
                raise UserError(
                    f"the cap of population {population!r} is {current}; {cap} does not"
                    " raise it, and a cap is never lowered."
                )
            ledger_rows.write_population_cap(self._db, population, wanted)

    def store_setting(self, name: str, value: str) -> None:
        """Store a setting for ever; another value later is a UserError.

        Another value: UserError.
        """
        if not name:
            raise InternalError("a setting has no name")
        with self._transaction("IMMEDIATE"):
            current = self.setting(name)
            if current is None:
                self._db.execute("INSERT INTO settings VALUES (?, ?)", (name, value))
                ledger_chain.append_event(self._db, "setting", name, value=value)
            elif current != value:
                raise UserError(
                    f"the ledger says {name} is {current!r}, once and for all; it"
                    " cannot"
                    f" become {value!r}."
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
            cap = self._require_cap(population)
            cap = cap.least(Amount.from_budget(limit)) if limit else cap
            previous = self.entry(release)
            if previous and previous.counts:
                raise InternalError(f"release {release} is {previous.state} already")
            ledger_told.charge_newcomers(self._db, population, cohort)
            entering = NewRelease(release, population, amount, cap, facts)
            before = ledger_rows.enter_release(self._db, entering, cohort)
            ledger_rows.check_room(before, amount, cap, population)

    def confirm(self, release: str, *, place: str, digest: str) -> None:
        """Record that a reserved release was published at ``place``.

        ``digest`` names the published bytes. Again with the same place and digest:
        nothing happens. Any other state, place or digest: InternalError.
        """
        with self._transaction("IMMEDIATE"):
            entry = self.entry(release)
            if entry and (entry.place, entry.digest) == (place, digest):
                return
            self._settle_release(release, CONFIRMED, place=place, digest=digest)

    def cancel(self, release: str) -> None:
        """Cancel a reserved release whose noise was never published."""
        with self._transaction("IMMEDIATE"):
            number, amount = self._settle_release(release, CANCELLED)
            before = ledger_rows.release_balances(self._db, number)
            steps = {b.id: b.amount.minus(amount) for b in before}
            ledger_rows.move_totals(self._db, number, steps)

    def mark_spent(self, release: str, reason: str) -> None:
        """Count a reserved release for ever, as its fate is unknown.

        Any other state: InternalError.
        """
        with self._transaction("IMMEDIATE"):
            self._settle_release(release, SPENT, reason=reason)

    def _verify_sums(self) -> None:
        """Refuse a ledger whose entries do not add up to its totals."""
        writes = self._external_writes()
        if self._verified_writes == writes:
            return
        first = self._verified_writes is None
        if not (first and ledger_stamp.is_verified(self._db, self.path)):
            disagreements = ledger_problems.find_disagreements(self._db)
            if disagreements:
                raise UserError(
                    f"the ledger {self.path} is not what was entered:"
                    f" {disagreements[0]}."
                    " Nothing was reserved; `curvote ledger check` says all."
                    f" {LEDGER.way_out}."
                )
        self._verified_writes = writes

    def _external_writes(self) -> int:
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def _require_cap(self, population: str) -> Amount:
        cap = ledger_rows.read_cap(self._db, population)
        if cap is None:
            raise UserError(
                f"the ledger has no cap for population {population!r}; nothing is"
                " released before one is set."
            )
        return cap

    def _settle_release(
        self, release: str, state: str, **how: str
    ) -> tuple[int, Amount]:
        """Move a release out of the state reserved; return number and amount."""
        done = ledger_rows.settle_release(self._db, release, state, **how)
        if done is None:
            entry = self.entry(release)
            now = f"is {entry.state}" if entry else "is not in the ledger"
            raise InternalError(f"release {release} {now}: it cannot become {state}")
        return done


def open_existing(path: Path) -> Ledger | None:
    """Open a ledger for reading; None where there is no file."""
    present = os.path.lexists(path) or journal_paths(path)
    return Ledger(path) if present else None
