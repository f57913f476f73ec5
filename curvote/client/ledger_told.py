"""What a restored ledger is told of releases that it does not know: they are spent.

Nobody asks for room here: what left has left. Every function runs inside a transaction
that its caller has begun.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Final

from curvote.client import ledger_chain, ledger_counting, ledger_rows
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_cohort import Clients, Cohort
from curvote.client.ledger_counting import Release
from curvote.client.ledger_entries import EVERYONE, SPENT, TOLD, Facts
from curvote.client.ledger_reading import LedgerReader
from curvote.privacy import Budget

REASON: Final = "the restored ledger did not know it"
_FACTS: Final[Facts] = {"everyone": 1}


class Restoring(LedgerReader):
    """A copy of a ledger that is about to take the ledger's place."""

    def take_in(
        self,
        release: str,
        clients: Clients,
        budget: Budget,
        *,
        population: str,
        facts: Facts,
    ) -> None:
        """Enter a release as spent for these ``clients``, whether they have room.

        Who of them is new to ``population`` is charged for what concerns everybody in
        it. One that counts already stays as it is.
        """
        cohort = Cohort(clients)
        with self._transaction("IMMEDIATE"):
            if (known := self.entry(release)) and known.counts:
                return
            charge_newcomers(self._db, population, cohort)
            about = release, population, Amount.of(budget)
            _enter_spent(self._db, Release(*about, None, facts), cohort)

    def charge_everyone(self, release: str, budget: Budget, population: str) -> None:
        """Enter a release as spent for every client of ``population``.

        Whoever comes later is charged, too: nobody knows whether they were in it. Told
        again it costs nobody more.
        """
        amount = Amount.of(budget)
        said = {"population": population, "amount": amount.texts()}
        with self._transaction("IMMEDIATE"):
            name = f"{EVERYONE}{release}"
            if self.setting(name) is not None:
                return
            _settle_setting(self._db, name, json.dumps(said))
            known = list(ledger_counting.everybody(self._db, population))
            if known:
                about = Release(release, population, amount, None, _FACTS)
                _enter_spent(self._db, about, Cohort(known))

    def keep_caps(self, caps: Mapping[str, Budget]) -> None:
        """Set the caps of populations that have none here: a cap is set once."""
        with self._transaction("IMMEDIATE"):
            for population in sorted(caps.keys() - ledger_chain.caps(self._db)):
                amount = Amount.of(caps[population])
                ledger_rows.set_cap(self._db, population, amount)

    def spend(self, release: str) -> None:
        """Let a reserved release count for ever."""
        with self._transaction("IMMEDIATE"):
            ledger_rows.settle(self._db, release, SPENT, reason=REASON)

    def accept(self, head: str) -> None:
        """Know a head of the chain that was lost, now that what it stood for is in."""
        with self._transaction("IMMEDIATE"):
            if not self.knows(head):
                _settle_setting(self._db, f"{TOLD}{head}", REASON)


def charge_newcomers(db: sqlite3.Connection, population: str, cohort: Cohort) -> None:
    """Charge who is new to a population for what concerns everybody in it."""
    query = "SELECT name, value FROM settings WHERE name LIKE ? || '%'"
    told = [(name, json.loads(v)) for name, v in db.execute(query, (EVERYONE,))]
    mine = [(name, said) for name, said in told if said["population"] == population]
    new = ledger_counting.newcomers(db, population, cohort) if mine else []
    for name, said in mine if new else []:
        release = name.removeprefix(EVERYONE)
        like = "SELECT count(*) FROM releases WHERE release LIKE ? || '+%'"
        (times,) = db.execute(like, (release,)).fetchone()
        about = f"{release}+{times + 1}", population, Amount.read(*said["amount"])
        _enter_spent(db, Release(*about, None, _FACTS), Cohort(new))


def _enter_spent(db: sqlite3.Connection, release: Release, cohort: Cohort) -> None:
    ledger_rows.enter(db, release, cohort)
    ledger_rows.settle(db, release.name, SPENT, reason=REASON)


def _settle_setting(db: sqlite3.Connection, name: str, value: str) -> None:
    db.execute("INSERT INTO settings VALUES (?, ?)", (name, value))
    ledger_chain.append(db, "setting", name, value=value)
