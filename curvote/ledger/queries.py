"""Checks and queries of a ledger: integrity, entries, totals, caps and chain."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from itertools import starmap
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from curvote.base.durable import DurableFile
from curvote.base.privacy import Budget
from curvote.base.text import normalise_id
from curvote.ledger import chain, reservation
from curvote.ledger.amounts import (
    EVERYONE_SETTING,
    KNOWN_HEAD_SETTING,
    SELECT_ENTRIES,
    Amount,
    Entry,
    SpentTotals,
    read_entry,
)
from curvote.ledger.chain import Movement
from curvote.ledger.cohort import ClientIds, Cohort, sorted_ids
from curvote.ledger.schema import LEDGER, ZERO_TOTAL_ID

Numbers = NDArray[np.int64]


def ledger_problems(db: sqlite3.Connection) -> list[str]:
    """Return all problems of a ledger, one line each.

    What SQLite itself finds comes alone: nothing else can be trusted then.
    """
    lines = [line for (line,) in db.execute("PRAGMA integrity_check")]
    problems = [f"integrity: {line}" for line in lines if line != "ok"]
    rows = db.execute("PRAGMA foreign_key_check").fetchall()
    if rows:
        table, _, parent, _ = rows[0]
        problems.append(
            f"{len(rows)} rows name what is not there, the first in {table}: {parent}"
        )
    return problems or find_disagreements(db)


def find_disagreements(db: sqlite3.Connection) -> list[str]:
    """Return where entries, totals and chain disagree, a line each."""
    return [*_wrong_members(db), *_wrong_sums(db), *chain.chain_problems(db)]


def _wrong_members(db: sqlite3.Connection) -> Iterator[str]:
    query = """SELECT release, n_clients,
        (SELECT count(*) FROM members m WHERE m.release = r.number) AS n
        FROM releases r WHERE n <> n_clients"""
    for release, expected, counted in db.execute(query):
        about = f"recorded about {expected} clients but names {counted}"
        yield f"release {release}: {about}"
    query = """SELECT r.release, count(*) FROM releases r
        JOIN members m ON m.release = r.number JOIN clients c ON c.number = m.client
        WHERE c.population <> r.population GROUP BY r.number"""
    for release, n in db.execute(query):
        yield f"release {release}: {n} clients are of another population"


def _wrong_sums(db: sqlite3.Connection) -> Iterator[str]:
    """Yield releases above their cap and totals that are no sums.

    A cancelled release is left out, so a sum is at most what it was at the time.
    """
    (last,) = db.execute("SELECT coalesce(max(number), 0) FROM clients").fetchone()
    sums = np.zeros(last + 1, dtype=np.int64)  # client number -> index into `amounts`
    amounts = [Amount()]
    query = """SELECT number, release, epsilon, delta, cap_epsilon, cap_delta
        FROM releases WHERE state <> 'cancelled' ORDER BY number"""
    members = "SELECT client FROM members WHERE release = ? ORDER BY client"
    for number, release, *texts in db.execute(query).fetchall():
        clients, more = _read_column(db, members, number), Amount.from_texts(*texts[:2])
        distinct, which = np.unique(sums[clients], return_inverse=True)
        counts = np.bincount(which, minlength=len(distinct))
        places = {amount: i for i, amount in enumerate(amounts)}
        after = []
        for old in distinct:
            amount = amounts[old].plus(more)
            if amount not in places:
                places[amount] = len(amounts)
                amounts.append(amount)
            after.append(places[amount])
        sums[clients] = np.array(after, dtype=np.int64)[which]
        if texts[2] is not None:
            cap = Amount.from_texts(*texts[2:])
            fits = [amounts[i].within(cap) for i in after]
            above = sum(int(n) for n, fit in zip(counts, fits, strict=True) if not fit)
            if above:
                yield f"release {release}: {above} clients are above its cap"
    numbers = _read_column(db, "SELECT number FROM clients ORDER BY number")
    totals = _read_column(db, "SELECT total FROM clients ORDER BY number")
    rows = db.execute("SELECT id, epsilon, delta FROM totals").fetchall()
    stored = {id_: Amount.from_texts(*texts) for id_, *texts in rows}
    ids, at = np.unique(totals, return_inverse=True)  # whatever stands there
    width = max(len(ids), 1)  # a pair in one number: it sorts faster
    pairs, ns = np.unique(sums[numbers] * width + at, return_counts=True)
    stored_counts = zip(*np.divmod(pairs, width), ns.tolist(), strict=True)
    wrong = sum(n for i, k, n in stored_counts if amounts[i] != stored.get(int(ids[k])))
    if wrong:
        yield f"the totals kept of {wrong} clients are not the sums of their releases"


def _read_column(db: sqlite3.Connection, query: str, *values: Any) -> Numbers:
    rows = db.execute(query, values)
    return np.fromiter((value for (value,) in rows), dtype=np.int64)


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

    def _query_rows(self, query: str, *values: str | int) -> list[Any]:
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
        query = """WHERE name = ? AND EXISTS (SELECT 1 FROM members m
            WHERE m.release = releases.number AND m.client = (
              SELECT c.number FROM clients c
              WHERE c.population = releases.population AND c.client = ?))
            ORDER BY number"""
        return self._query_entries(query, population, normalise_id(str(client)))

    def members(self, release: str) -> NDArray[np.str_]:
        """Return the ids (n,) of the clients that a release is about."""
        query = """SELECT clients.client FROM releases
            JOIN members ON members.release = releases.number
            JOIN clients ON clients.number = members.client
            WHERE releases.release = ?"""
        names = [name for (name,) in self._query_rows(query, release)]
        return np.array(names, dtype=np.str_)

    def spent(self, population: str) -> SpentTotals:
        """Return the totals of all clients who have spent anything."""
        query = """SELECT client, total FROM clients
            JOIN populations ON populations.id = population
            WHERE name = ? AND total <> ?"""
        with self._transaction("DEFERRED"):
            rows = self._query_rows(query, population, ZERO_TOTAL_ID)
            totals = self._query_rows("SELECT id, epsilon, delta FROM totals")
            floats = {i: Amount.from_texts(*texts).to_floats() for i, *texts in totals}
        if not {total for _, total in rows} <= floats.keys():
            raise LEDGER.damaged_error(self.path)
        amounts = np.array([floats[total] for _, total in rows]).reshape(-1, 2)
        names = np.array([name for name, _ in rows], dtype=np.str_)
        return SpentTotals(names, amounts[:, 0], amounts[:, 1])

    def most_spent(self, population: str, clients: ClientIds) -> Amount:
        """Return the largest spending among ``clients``, of each part; exact."""
        ids = set(sorted_ids(clients))
        query = """SELECT client, epsilon, delta FROM clients JOIN populations
            ON populations.id = population JOIN totals ON totals.id = total
            WHERE name = ?"""
        rows = self._query_rows(query, population)
        return _largest_amount(
            {tuple(texts) for client, *texts in rows if client in ids}
        )

    def most_spent_in(self, population: str) -> Amount:
        """Return the largest spending in ``population``, of each part; exact."""
        query = """SELECT epsilon, delta FROM totals WHERE id IN (SELECT DISTINCT total
            FROM clients JOIN populations ON populations.id = population
            WHERE name = ?)"""
        return _largest_amount(self._query_rows(query, population))

    def count_overlap(self, population: str, clients: ClientIds) -> int:
        """Return how many of ``clients`` have spent in ``population``."""
        with self._transaction("DEFERRED"):
            return reservation.count_overlap(self._db, population, Cohort(clients))

    def cap(self, population: str) -> Budget | None:
        """Return the cap of a client in ``population``, or None."""
        with LEDGER.errors(self.path):
            amount = reservation.read_cap(self._db, population)
        return amount.budget() if amount else None

    def caps(self) -> dict[str, Budget]:
        """Return the cap of every population that has one."""
        with LEDGER.errors(self.path):
            caps = chain.read_caps(self._db).items()
            return {name: Amount.from_texts(*texts).budget() for name, texts in caps}

    def setting(self, name: str) -> str | None:
        """Return the stored setting of a name, or None."""
        rows = self._query_rows("SELECT value FROM settings WHERE name = ?", name)
        return rows[0][0] if rows else None

    def head(self) -> str:
        """Return the newest link of the chain."""
        with LEDGER.errors(self.path):
            return chain.chain_head(self._db)

    def top(self) -> tuple[int, str]:
        """Return position and link of the newest event in the chain."""
        with LEDGER.errors(self.path):
            return chain.chain_top(self._db)

    def origin(self) -> str:
        """Return the first link of the chain, which identifies the ledger."""
        rows = self._query_rows("SELECT link FROM chain WHERE number = 1")
        return str(rows[0][0]) if rows else ""

    def knows(self, head: str) -> bool:
        """Return whether ``head`` was ever the newest link of this ledger.

        Or a restored ledger was told what it stood for (`Ledger.take_in`).
        """
        links = self._query_rows("SELECT 1 FROM chain WHERE link = ?", head)
        return bool(links) or self.accepted_head(head)

    def accepted_head(self, head: str) -> bool:
        """Return whether a restored ledger has accepted ``head``."""
        return self.setting(f"{KNOWN_HEAD_SETTING}{head}") is not None

    def everyone_releases(self) -> dict[str, str | None]:
        """Return the releases that concern newcomers, with their populations."""
        query = "SELECT name, value FROM settings WHERE name LIKE ? || '%'"
        with LEDGER.errors(self.path):
            return {
                name.removeprefix(EVERYONE_SETTING): json.loads(value)["population"]
                for name, value in self._query_rows(query, EVERYONE_SETTING)
            }

    def movements(self) -> list[Movement]:
        """Return the reservations and settlements, in the order of the chain."""
        with LEDGER.errors(self.path):
            return list(chain.read_movements(self._db))

    def count_spenders(self, population: str) -> int:
        """Return how many clients of ``population`` have spent anything."""
        query = """SELECT count(*) FROM clients JOIN populations ON id = population
            WHERE name = ? AND total <> ?"""
        return int(self._query_rows(query, population, ZERO_TOTAL_ID)[0][0])

    def count_releases(self) -> tuple[int, int]:
        """Return how many releases count, and the number of their clients."""
        query = """SELECT (SELECT count(*) FROM releases WHERE state <> 'cancelled'),
            (SELECT count(*) FROM clients WHERE total <> ?)"""
        ((releases, clients),) = self._query_rows(query, ZERO_TOTAL_ID)
        return releases, clients

    def problems(self) -> list[str]:
        """Return all problems of the ledger, a line each; empty if it is sound.

        SQLite's own checks, the states, the numbers of clients, all totals and caps
        once more, added up from the first release on, and the chain of entries.
        """
        with self._transaction("DEFERRED"):
            return ledger_problems(self._db)

    def _query_entries(self, rest: str, *values: str) -> list[Entry]:
        with LEDGER.errors(self.path):
            return [
                *map(read_entry, self._query_rows(f"{SELECT_ENTRIES} {rest}", *values))
            ]


def _largest_amount(amounts: Iterable[Iterable[str]]) -> Amount:
    return reduce(Amount.most, starmap(Amount.from_texts, amounts), Amount())
