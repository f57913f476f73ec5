"""Privacy ledger: the durable record of all releases, its restoring and backups.

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
from curvote.client.ledger_cohort import ClientIds, Cohort
from curvote.client.ledger_counting import NewRelease
from curvote.client.ledger_entries import (
    EVERYONE_SETTING,
    KNOWN_HEAD_SETTING,
    SPENT,
    ReleaseFacts,
)
from curvote.client.ledger_reading import LedgerReader
from curvote.privacy import Budget

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
            name = f"{EVERYONE_SETTING}{release}"
            if self.setting(name) is not None:
                return
            _insert_setting(self._db, name, json.dumps(value))
            clients = list(ledger_counting.all_clients(self._db, population))
            if clients:
                about = NewRelease(release, population, amount, None, _EVERYONE_FACTS)
                _insert_spent(self._db, about, Cohort(clients))

    def restore_caps(self, caps: Mapping[str, Budget]) -> None:
        """Set the caps of populations that have none here."""
        with self._transaction("IMMEDIATE"):
            for population in sorted(caps.keys() - ledger_chain.read_caps(self._db)):
                amount = Amount.from_budget(caps[population])
                ledger_rows.write_population_cap(self._db, population, amount)

    def mark_spent(self, release: str) -> None:
        """Count a reserved release for ever."""
        with self._transaction("IMMEDIATE"):
            ledger_rows.settle_release(self._db, release, SPENT, reason=RESTORED_REASON)

    def accept_head(self, head: str) -> None:
        """Accept a lost head of the chain as known."""
        with self._transaction("IMMEDIATE"):
            if not self.knows(head):
                _insert_setting(
                    self._db, f"{KNOWN_HEAD_SETTING}{head}", RESTORED_REASON
                )


def charge_newcomers(db: sqlite3.Connection, population: str, cohort: Cohort) -> None:
    """Charge newcomers to a population for releases about everybody."""
    query = "SELECT name, value FROM settings WHERE name LIKE ? || '%'"
    settings = [
        (name, json.loads(v)) for name, v in db.execute(query, (EVERYONE_SETTING,))
    ]
    matching = [
        (name, value) for name, value in settings if value["population"] == population
    ]
    new = ledger_counting.find_newcomers(db, population, cohort) if matching else []
    for name, value in matching if new else []:
        release = name.removeprefix(EVERYONE_SETTING)
        like = "SELECT count(*) FROM releases WHERE release LIKE ? || '+%'"
        (times,) = db.execute(like, (release,)).fetchone()
        about = (
            f"{release}+{times + 1}",
            population,
            Amount.from_texts(*value["amount"]),
        )
        _insert_spent(db, NewRelease(*about, None, _EVERYONE_FACTS), Cohort(new))


def _insert_spent(db: sqlite3.Connection, release: NewRelease, cohort: Cohort) -> None:
    ledger_rows.enter_release(db, release, cohort)
    ledger_rows.settle_release(db, release.name, SPENT, reason=RESTORED_REASON)


def _insert_setting(db: sqlite3.Connection, name: str, value: str) -> None:
    db.execute("INSERT INTO settings VALUES (?, ?)", (name, value))
    ledger_chain.append_event(db, "setting", name, value=value)
