"""Queries of a ledger: entries, totals, caps, settings and chain."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from curvote.client import ledger_chain, ledger_counting, ledger_problems, ledger_rows
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_chain import Movement
from curvote.client.ledger_cohort import ClientIds, Cohort, sorted_ids
from curvote.client.ledger_entries import (
    EVERYONE_SETTING,
    KNOWN_HEAD_SETTING,
    SELECT_ENTRIES,
    Entry,
    SpentTotals,
    read_entry,
)
from curvote.client.ledger_schema import LEDGER, ZERO_TOTAL_ID
from curvote.durable import DurableFile
from curvote.identifier import normalise_id
from curvote.privacy import Budget


class DurableBook:
    """An open durable SQLite file of the kind ``FILE``."""

    FILE: ClassVar[DurableFile]

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._db = self.FILE.connect(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is no error."""
        self._db.close()

    def transaction_if_many(self, count: int) -> AbstractContextManager[None]:
        """Return one transaction for ``count`` calls, none for a single call.

        It waits for the disk once.
        """
        return self._transaction("IMMEDIATE") if count > 1 else nullcontext()

    def _rows(self, query: str, *values: str | int) -> list[Any]:
        with self.FILE.errors(self.path):
            return self._db.execute(query, values).fetchall()

    def _transaction(
        self, kind: Literal["IMMEDIATE", "DEFERRED"]
    ) -> AbstractContextManager[None]:
        if self._db.in_transaction:  # of several calls together
            return nullcontext()
        return self.FILE.transaction(self._db, self.path, kind)


class LedgerReader(DurableBook):
    """Read-only queries of a `Ledger`, each on one state of the file."""

    FILE = LEDGER

    def entry(self, release: str) -> Entry | None:
        """Return one release, or None if it was never reserved."""
        entries = self._query_entries("WHERE release = ?", release)
        return entries[0] if entries else None

    def entries(self, population: str | None = None) -> list[Entry]:
        """Return all releases, or those of one population, in order of reservation."""
        if population is None:
            return self._query_entries("ORDER BY number")
        return self._query_entries("WHERE name = ? ORDER BY number", population)

    def releases_of(self, population: str, client: str | int) -> list[Entry]:
        """Return the releases about one client, cancelled ones too."""
        return self._query_entries(
            """WHERE name = ? AND EXISTS (SELECT 1 FROM members m
              WHERE m.release = releases.number AND m.client = (
                SELECT c.number FROM clients c
                WHERE c.population = releases.population AND c.client = ?))
            ORDER BY number""",
            population,
            normalise_id(str(client)),
        )

    def members(self, release: str) -> NDArray[np.str_]:
        """Return the ids (n,) of the clients that a release is about."""
        rows = self._rows(
            """SELECT clients.client FROM releases
            JOIN members ON members.release = releases.number
            JOIN clients ON clients.number = members.client
            WHERE releases.release = ?""",
            release,
        )
        return np.array([name for (name,) in rows], dtype=np.str_)

    def spent(self, population: str) -> SpentTotals:
        """Return the totals of all clients who have spent anything."""
        query = """SELECT client, total FROM clients
            JOIN populations ON populations.id = population
            WHERE name = ? AND total <> ?"""
        with self._transaction("DEFERRED"):
            rows = self._rows(query, population, ZERO_TOTAL_ID)
            totals = self._rows("SELECT id, epsilon, delta FROM totals")
            floats = {
                id_: Amount.from_texts(*texts).to_floats() for id_, *texts in totals
            }
        if not {total for _, total in rows} <= floats.keys():
            raise LEDGER.damaged_error(self.path)
        amounts = np.array([floats[total] for _, total in rows]).reshape(-1, 2)
        names = np.array([name for name, _ in rows], dtype=np.str_)
        return SpentTotals(names, amounts[:, 0], amounts[:, 1])

    def most_spent(self, population: str, clients: ClientIds) -> Amount:
        """Return the largest spending among ``clients``, of each part; exact."""
        ids = set(sorted_ids(clients))
        rows = self._rows(
            """SELECT client, epsilon, delta FROM clients JOIN populations
            ON populations.id = population JOIN totals ON totals.id = total
            WHERE name = ?""",
            population,
        )
        amounts = {tuple(texts) for client, *texts in rows if client in ids}
        return reduce(
            Amount.most, (Amount.from_texts(*texts) for texts in amounts), Amount()
        )

    def most_spent_in(self, population: str) -> Amount:
        """Return the largest spending in ``population``, of each part; exact."""
        rows = self._rows(
            """SELECT epsilon, delta FROM totals WHERE id IN (SELECT DISTINCT total
            FROM clients JOIN populations ON populations.id = population
            WHERE name = ?)""",
            population,
        )
        return reduce(
            Amount.most, (Amount.from_texts(*texts) for texts in rows), Amount()
        )

    def count_overlap(self, population: str, clients: ClientIds) -> int:
        """Return how many of ``clients`` have spent in ``population``."""
        with self._transaction("DEFERRED"):
            return ledger_counting.count_overlap(self._db, population, Cohort(clients))

    def cap(self, population: str) -> Budget | None:
        """Return the cap of a client in ``population``, or None."""
        with LEDGER.errors(self.path):
            amount = ledger_rows.read_cap(self._db, population)
        return amount.budget() if amount else None

    def caps(self) -> dict[str, Budget]:
        """Return the cap of every population that has one."""
        with LEDGER.errors(self.path):
            caps = ledger_chain.read_caps(self._db).items()
            return {name: Amount.from_texts(*texts).budget() for name, texts in caps}

    def setting(self, name: str) -> str | None:
        """Return the stored setting of a name, or None."""
        rows = self._rows("SELECT value FROM settings WHERE name = ?", name)
        return rows[0][0] if rows else None

    def head(self) -> str:
        """Return the newest link of the chain."""
        with LEDGER.errors(self.path):
            return ledger_chain.chain_head(self._db)

    def top(self) -> tuple[int, str]:
        """Return position and link of the newest event in the chain."""
        with LEDGER.errors(self.path):
            return ledger_chain.chain_top(self._db)

    def origin(self) -> str:
        """Return the first link of the chain, which identifies the ledger."""
        rows = self._rows("SELECT link FROM chain WHERE number = 1")
        return str(rows[0][0]) if rows else ""

    def knows(self, head: str) -> bool:
        """Return whether ``head`` was ever the newest link of this ledger.

        Or a restored ledger was told what it stood for (`Ledger.take_in`).
        """
        return bool(
            self._rows("SELECT 1 FROM chain WHERE link = ?", head)
            or self.accepted_head(head)
        )

    def accepted_head(self, head: str) -> bool:
        """Return whether a restored ledger has accepted ``head``."""
        return self.setting(f"{KNOWN_HEAD_SETTING}{head}") is not None

    def everyone_releases(self) -> dict[str, str | None]:
        """Return the releases that concern newcomers, with their populations."""
        query = "SELECT name, value FROM settings WHERE name LIKE ? || '%'"
        with LEDGER.errors(self.path):
            settings = {
                n: json.loads(v) for n, v in self._rows(query, EVERYONE_SETTING)
            }
        return {
            n.removeprefix(EVERYONE_SETTING): v["population"]
            for n, v in settings.items()
        }

    def movements(self) -> list[Movement]:
        """Return the reservations and settlements, in the order of the chain."""
        with LEDGER.errors(self.path):
            return list(ledger_chain.read_movements(self._db))

    def count_spenders(self, population: str) -> int:
        """Return how many clients of ``population`` have spent anything."""
        rows = self._rows(
            """SELECT count(*) FROM clients JOIN populations ON id = population
            WHERE name = ? AND total <> ?""",
            *(population, ZERO_TOTAL_ID),
        )
        return int(rows[0][0])

    def count_releases(self) -> tuple[int, int]:
        """Return how many releases count, and the number of their clients."""
        ((releases, clients),) = self._rows(
            """SELECT (SELECT count(*) FROM releases WHERE state <> 'cancelled'),
            (SELECT count(*) FROM clients WHERE total <> ?)""",
            ZERO_TOTAL_ID,
        )
        return releases, clients

    def problems(self) -> list[str]:
        """Return all problems of the ledger, a line each; empty if it is sound.

        SQLite's own checks, the states, the numbers of clients, all totals and caps
        once more, added up from the first release on, and the chain of entries.
        """
        with self._transaction("DEFERRED"):
            return ledger_problems.ledger_problems(self._db)

    def _query_entries(self, rest: str, *values: str) -> list[Entry]:
        with LEDGER.errors(self.path):
            return [
                read_entry(row)
                for row in self._rows(f"{SELECT_ENTRIES} {rest}", *values)
            ]
