"""A cohort entered in batches: who is in a release, and what each has spent then.

Every function runs inside a transaction that its caller has begun.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.client import ledger_chain
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_cohort import BATCH, Cohort
from curvote.client.ledger_entries import RESERVED, Facts
from curvote.client.ledger_schema import NOTHING_SPENT
from curvote.errors import InternalError


@dataclass(frozen=True)
class Balance:
    """A distinct total of a cohort's clients, and how many of them have it."""

    id: int
    amount: Amount
    n: int


@dataclass(frozen=True)
class Release:
    """A release that is about to be reserved; ``cap`` is None where none was asked."""

    name: str
    population: str
    need: Amount
    cap: Amount | None
    facts: Facts

    def columns(self) -> dict[str, str | int | None]:
        """Return the columns of its row, but for its name, population and clients."""
        if any(
            isinstance(v, float) and not math.isfinite(v) for v in self.facts.values()
        ):
            raise InternalError("a fact of a release is not finite")
        amounts = ("epsilon", "delta", "cap_epsilon", "cap_delta")
        texts = self.need.texts() + (self.cap.texts() if self.cap else (None, None))
        return {
            "state": RESERVED,
            **dict(zip(amounts, texts, strict=True)),
            "facts": json.dumps(dict(self.facts), sort_keys=True),
            "reserved": ledger_chain.now(),
        }


def count(
    db: sqlite3.Connection, where: tuple[int, int], cohort: Cohort, release: Release
) -> tuple[list[Balance], str]:
    """Enter the clients of (release, population), each with its total after it.

    One batch after the other: ten million clients need the memory of one batch. Who is
    new is entered with the new total at once. Where somebody lacks room the others are
    only counted: the caller will refuse. Returns the distinct totals before, and the
    digest of the cohort.
    """
    steps, digest = _Steps(db, release), ledger_chain.CohortDigest()
    with _batches(db, cohort) as batches:
        for batch in batches:
            digest.add(batch)
            db.execute("DELETE FROM mine")
            db.execute(_MINE, where[1:])
            found = db.execute(_TOTALS).fetchall()
            for old, n in found:
                steps.take(old, n)
            if new := len(batch) - sum(n for _, n in found):
                steps.take(NOTHING_SPENT, new)
            if steps.fit:
                _write(db, where, steps, known=bool(found), new=bool(new))
        return steps.before(), digest.text()


def _write(
    db: sqlite3.Connection,
    where: tuple[int, int],
    steps: _Steps,
    *,
    known: bool,
    new: bool,
) -> None:
    """Write one batch: its clients' totals, and that they are in the release."""
    number, group = where
    if known:
        db.execute(_MOVE)
        db.execute("INSERT INTO members SELECT ?, number FROM mine", (number,))
    if new:
        query = "SELECT coalesce(max(number), 0) FROM clients"
        (last,) = db.execute(query).fetchone()
        db.execute(_NEWCOMERS, (group, steps.after(NOTHING_SPENT)))
        members = "INSERT INTO members SELECT ?, number FROM clients WHERE number > ?"
        db.execute(members, (number, last))


# `cohort` is one batch, `mine` who of them is known; CROSS JOIN fixes the order: each
# of the batch is looked up, once.
_KNOWN: Final = "cohort CROSS JOIN clients USING (client) WHERE population = ?"
_MINE: Final = f"INSERT INTO mine SELECT number, total FROM {_KNOWN}"  # noqa: S608
_TOTALS: Final = "SELECT total, count(*) FROM mine GROUP BY total"
_MOVE: Final = """UPDATE clients SET total = (SELECT new FROM step WHERE old = total)
WHERE number IN (SELECT number FROM mine)"""
_NEWCOMERS: Final = """INSERT INTO clients (population, client, total)
SELECT ?1, client, ?2 FROM cohort WHERE true ON CONFLICT DO NOTHING"""


class _Steps:
    """The distinct totals of a cohort, each with the one that a release leads to.

    ``fit`` says whether all of them were within the cap, so far.
    """

    def __init__(self, db: sqlite3.Connection, release: Release) -> None:
        self._db, self._release = db, release
        self._known: dict[int, tuple[Amount, int]] = {}
        self._n: dict[int, int] = {}
        self.fit = True

    def take(self, old: int, n: int) -> None:
        """Count ``n`` clients of the total ``old``."""
        if old not in self._known:
            query = "SELECT epsilon, delta FROM totals WHERE id = ?"
            before = Amount.read(*self._db.execute(query, (old,)).fetchone())
            amount, cap = before.plus(self._release.need), self._release.cap
            self.fit = self.fit and (cap is None or amount.within(cap))
            after = total(self._db, amount)
            self._db.execute("INSERT INTO step VALUES (?, ?)", (old, after))
            self._known[old] = before, after
        self._n[old] = self._n.get(old, 0) + n

    def after(self, old: int) -> int:
        """Return the total that one leads to."""
        return self._known[old][1]

    def before(self) -> list[Balance]:
        """Return the totals before, and how many had each."""
        return [Balance(old, self._known[old][0], n) for old, n in self._n.items()]


@contextmanager
def _batches(db: sqlite3.Connection, cohort: Cohort) -> Iterator[Iterator[list[str]]]:
    """Let the temporary table `cohort` hold one batch after the other."""
    db.execute("CREATE TEMP TABLE cohort (client TEXT)")
    db.execute("CREATE TEMP TABLE mine (number INTEGER PRIMARY KEY, total INTEGER)")
    db.execute("CREATE TEMP TABLE step (old INTEGER PRIMARY KEY, new INTEGER)")
    try:
        yield (_filled(db, batch) for batch in cohort)
    finally:
        for table in ("cohort", "mine", "step"):
            db.execute(f"DROP TABLE {table}")


def _filled(db: sqlite3.Connection, batch: list[str]) -> list[str]:
    db.execute("DELETE FROM cohort")
    db.executemany("INSERT INTO cohort VALUES (?)", ((name,) for name in batch))
    return batch


def overlap(db: sqlite3.Connection, population: str, cohort: Cohort) -> int:
    """Return how many of a cohort have spent anything in a population."""
    found = db.execute("SELECT id FROM populations WHERE name = ?", (population,))
    group = found.fetchone()
    if group is None:
        return 0
    query = f"SELECT count(*) FROM {_KNOWN} AND total <> {NOTHING_SPENT}"  # noqa: S608
    with _batches(db, cohort) as batches:
        return sum(db.execute(query, group).fetchone()[0] for _ in batches)


def newcomers(db: sqlite3.Connection, population: str, cohort: Cohort) -> list[str]:
    """Return who of a cohort is not in a population yet."""
    query = """SELECT client FROM cohort WHERE NOT EXISTS (
        SELECT 1 FROM clients WHERE clients.client = cohort.client
        AND population = (SELECT id FROM populations WHERE name = ?))"""
    with _batches(db, cohort) as batches:
        rows = (row for _ in batches for row in db.execute(query, (population,)))
        return [name for (name,) in rows]


def everybody(db: sqlite3.Connection, population: str) -> Iterator[NDArray[np.str_]]:
    """Yield all clients of a population, a batch at a time."""
    query = """SELECT client FROM clients JOIN populations ON id = population
        WHERE name = ?"""
    found = db.execute(query, (population,))
    while batch := found.fetchmany(BATCH):
        yield np.array([name for (name,) in batch], dtype=np.str_)


def total(db: sqlite3.Connection, amount: Amount) -> int:
    """Return the row of an amount among the totals."""
    texts = amount.texts()
    db.execute("INSERT OR IGNORE INTO totals VALUES (NULL, ?, ?)", texts)
    query = "SELECT id FROM totals WHERE epsilon = ? AND delta = ?"
    return int(db.execute(query, texts).fetchone()[0])
