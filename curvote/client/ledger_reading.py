"""What a ledger can be asked."""

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
from curvote.client.ledger_cohort import Clients, Cohort, names
from curvote.client.ledger_entries import EVERYONE, SELECT, TOLD, Entry, Spent, read
from curvote.client.ledger_schema import LEDGER, NOTHING_SPENT
from curvote.durable import DurableFile
from curvote.identifier import normal
from curvote.privacy import Budget


class Book:
    """A durable file of the kind ``FILE`` that is open."""

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

    def together(self, count: int) -> AbstractContextManager[None]:
        """Do ``count`` calls as one transaction: all of them, or none; one: as it is.

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


class LedgerReader(Book):
    """The questions of a `Ledger`; each sees one state of the file."""

    FILE = LEDGER

    def entry(self, release: str) -> Entry | None:
        """Return one release, or None if it was never reserved."""
        found = self._entries("WHERE release = ?", release)
        return found[0] if found else None

    def entries(self, population: str | None = None) -> list[Entry]:
        """Return all releases, or those of one population, in order of reservation."""
        if population is None:
            return self._entries("ORDER BY number")
        return self._entries("WHERE name = ? ORDER BY number", population)

    def releases_of(self, population: str, client: str | int) -> list[Entry]:
        """Return the releases about one client, cancelled ones too."""
        return self._entries(
            """WHERE name = ? AND EXISTS (SELECT 1 FROM members m
              WHERE m.release = releases.number AND m.client = (
                SELECT c.number FROM clients c
                WHERE c.population = releases.population AND c.client = ?))
            ORDER BY number""",
            population,
            normal(str(client)),
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

    def spent(self, population: str) -> Spent:
        """Return the totals of all clients who have spent anything."""
        query = """SELECT client, total FROM clients
            JOIN populations ON populations.id = population
            WHERE name = ? AND total <> ?"""
        with self._transaction("DEFERRED"):
            rows = self._rows(query, population, NOTHING_SPENT)
            kinds = self._rows("SELECT id, epsilon, delta FROM totals")
            floats = {id_: Amount.read(*texts).floats() for id_, *texts in kinds}
        if not {total for _, total in rows} <= floats.keys():
            raise LEDGER.damaged(self.path)
        amounts = np.array([floats[total] for _, total in rows]).reshape(-1, 2)
        names = np.array([name for name, _ in rows], dtype=np.str_)
        return Spent(names, amounts[:, 0], amounts[:, 1])

    def most_spent(self, population: str, clients: Clients) -> Amount:
        """Return the most that any of ``clients`` has spent, of each part; exact."""
        wanted = set(names(clients))
        rows = self._rows(
            """SELECT client, epsilon, delta FROM clients JOIN populations
            ON populations.id = population JOIN totals ON totals.id = total
            WHERE name = ?""",
            population,
        )
        known = {tuple(texts) for client, *texts in rows if client in wanted}
        return reduce(Amount.most, (Amount.read(*texts) for texts in known), Amount())

    def worst(self, population: str) -> Amount:
        """Return the most that any client of ``population`` has spent; exact."""
        rows = self._rows(
            """SELECT epsilon, delta FROM totals WHERE id IN (SELECT DISTINCT total
            FROM clients JOIN populations ON populations.id = population
            WHERE name = ?)""",
            population,
        )
        return reduce(Amount.most, (Amount.read(*texts) for texts in rows), Amount())

    def overlap(self, population: str, clients: Clients) -> int:
        """Return how many of ``clients`` have spent anything in ``population``."""
        with self._transaction("DEFERRED"):
            return ledger_counting.overlap(self._db, population, Cohort(clients))

    def cap(self, population: str) -> Budget | None:
        """Return the most that a client may spend in ``population``, if it was set."""
        with LEDGER.errors(self.path):
            found = ledger_rows.cap(self._db, population)
        return found.budget() if found else None

    def caps(self) -> dict[str, Budget]:
        """Return the cap of every population that has one."""
        with LEDGER.errors(self.path):
            found = ledger_chain.caps(self._db).items()
            return {name: Amount.read(*texts).budget() for name, texts in found}

    def setting(self, name: str) -> str | None:
        """Return what was settled once under ``name``, or None."""
        rows = self._rows("SELECT value FROM settings WHERE name = ?", name)
        return rows[0][0] if rows else None

    def head(self) -> str:
        """Return the newest link of the chain over all that was ever entered."""
        with LEDGER.errors(self.path):
            return ledger_chain.head(self._db)

    def top(self) -> tuple[int, str]:
        """Return the sequence number of the newest link, from 1 on, and the link."""
        with LEDGER.errors(self.path):
            return ledger_chain.top(self._db)

    def origin(self) -> str:
        """Return the first link of the chain: it names this ledger and its copies."""
        rows = self._rows("SELECT link FROM chain WHERE number = 1")
        return str(rows[0][0]) if rows else ""

    def knows(self, head: str) -> bool:
        """Say whether ``head`` was ever the newest link: else the ledger is older.

        Or a restored ledger was told what it stood for (`Ledger.take_in`).
        """
        return bool(
            self._rows("SELECT 1 FROM chain WHERE link = ?", head) or self.told_of(head)
        )

    def told_of(self, head: str) -> bool:
        """Say whether a restored ledger was told of ``head``, and lost it before."""
        return self.setting(f"{TOLD}{head}") is not None

    def everyone(self) -> dict[str, str | None]:
        """Return the releases that concern whoever comes, each with its population."""
        query = "SELECT name, value FROM settings WHERE name LIKE ? || '%'"
        with LEDGER.errors(self.path):
            told = {n: json.loads(v) for n, v in self._rows(query, EVERYONE)}
        return {n.removeprefix(EVERYONE): v["population"] for n, v in told.items()}

    def movements(self) -> list[Movement]:
        """Return the reservations and settlements, in the order of the chain."""
        with LEDGER.errors(self.path):
            return list(ledger_chain.movements(self._db))

    def n_spent(self, population: str) -> int:
        """Return how many clients of ``population`` have spent anything."""
        rows = self._rows(
            """SELECT count(*) FROM clients JOIN populations ON id = population
            WHERE name = ? AND total <> ?""",
            *(population, NOTHING_SPENT),
        )
        return int(rows[0][0])

    def counts(self) -> tuple[int, int]:
        """Return how many releases count, and about how many clients they are."""
        ((releases, clients),) = self._rows(
            """SELECT (SELECT count(*) FROM releases WHERE state <> 'cancelled'),
            (SELECT count(*) FROM clients WHERE total <> ?)""",
            NOTHING_SPENT,
        )
        return releases, clients

    def problems(self) -> list[str]:
        """Check everything and return what is wrong, a line each; empty: sound.

        SQLite's own checks, the states, the numbers of clients, all totals and caps
        once more, added up from the first release on, and the chain of entries.
        """
        with self._transaction("DEFERRED"):
            return ledger_problems.problems(self._db)

    def _entries(self, rest: str, *values: str) -> list[Entry]:
        with LEDGER.errors(self.path):
            return [read(row) for row in self._rows(f"{SELECT} {rest}", *values)]
