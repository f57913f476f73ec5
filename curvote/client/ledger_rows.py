"""What a reservation writes: the rows of a cohort, moved all together.

Every function runs inside a transaction that its caller has begun.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
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
from curvote.errors import InternalError, UserError


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


def enter(db: sqlite3.Connection, release: Release, cohort: Cohort) -> list[Balance]:
    """Enter a reserved release, who is in it, and its link of the chain.

    One of its name that was cancelled goes. Returns the distinct totals of its clients
    before.
    """
    drop(db, release.name)
    row = release.columns() | {"n_clients": cohort.n}
    group = _population(db, release.population)
    names = ", ".join(row)
    marks = ", ".join("?" * len(row))
    (number,) = db.execute(
        f"INSERT INTO releases ({names}, release, population)"  # noqa: S608 - names of columns are ours
        f" VALUES ({marks}, ?, ?) RETURNING number",
        (*row.values(), release.name, group),
    ).fetchone()
    before, digest = _count(db, (number, group), cohort, release.need)
    about = {"population": release.population, "clients": digest}
    ledger_chain.append(db, "reserved", release.name, **row, **about)
    return before


def settle(
    db: sqlite3.Connection, release: str, state: str, **how: str
) -> tuple[int, Amount] | None:
    """Let a release leave the state reserved; return its number and budget.

    None: it is not reserved.
    """
    said: dict[str, str | None] = dict.fromkeys(ledger_chain.SETTLED)
    said |= {"state": state, "settled": ledger_chain.now(), **how}
    row = db.execute(
        """UPDATE releases SET state = ?, settled = ?, place = ?, digest = ?,
        reason = ? WHERE release = ? AND state = 'reserved'
        RETURNING number, epsilon, delta""",
        (*said.values(), release),
    ).fetchone()
    if row is None:
        return None
    ledger_chain.append(db, "settled", release, **said)
    return row[0], Amount.read(*row[1:])


def _count(
    db: sqlite3.Connection, where: tuple[int, int], cohort: Cohort, need: Amount
) -> tuple[list[Balance], str]:
    """Enter the clients of (release, population), each with its total after it.

    One batch after the other: ten million clients need the memory of one batch. Who is
    new is entered with the new total at once. Returns the distinct totals before, and
    the digest of the cohort.
    """
    steps, digest = _Steps(db, need), ledger_chain.CohortDigest()
    number, group = where
    with _batches(db, cohort) as batches:
        for batch in batches:
            digest.add(batch)
            found = db.execute(_TOTALS, (group,)).fetchall()
            for old, n in found:
                steps.take(old, n)
            if found:
                db.execute(_MOVE, (group,))
            if new := len(batch) - sum(n for _, n in found):
                db.execute(_NEWCOMERS, (group, steps.take(NOTHING_SPENT, new)))
            db.execute(_MEMBERS, (number, group))
        return steps.before(), digest.text()


# `cohort` is one batch; CROSS JOIN fixes the order: each of them is looked up.
_MINE: Final = "cohort CROSS JOIN clients USING (client) WHERE population = ?"
_TOTALS: Final = f"SELECT total, count(*) FROM {_MINE} GROUP BY total"  # noqa: S608
_MOVE: Final = f"""UPDATE clients SET total = (SELECT new FROM step WHERE old = total)
WHERE number IN (SELECT number FROM {_MINE})"""  # noqa: S608
_MEMBERS: Final = f"INSERT INTO members SELECT ?, number FROM {_MINE}"  # noqa: S608
_NEWCOMERS: Final = """INSERT INTO clients (population, client, total)
SELECT ?1, client, ?2 FROM cohort WHERE true ON CONFLICT DO NOTHING"""


class _Steps:
    """The distinct totals of a cohort, each with the one that a release leads to."""

    def __init__(self, db: sqlite3.Connection, need: Amount) -> None:
        self._db, self._need = db, need
        self._known: dict[int, tuple[Amount, int]] = {}
        self._n: dict[int, int] = {}

    def take(self, old: int, n: int) -> int:
        """Count ``n`` clients of the total ``old``; return the id of the new one."""
        if old not in self._known:
            query = "SELECT epsilon, delta FROM totals WHERE id = ?"
            before = Amount.read(*self._db.execute(query, (old,)).fetchone())
            after = _total(self._db, before.plus(self._need))
            self._db.execute("INSERT INTO step VALUES (?, ?)", (old, after))
            self._known[old] = before, after
        self._n[old] = self._n.get(old, 0) + n
        return self._known[old][1]

    def before(self) -> list[Balance]:
        """Return the totals before, and how many had each."""
        return [Balance(old, self._known[old][0], n) for old, n in self._n.items()]


@contextmanager
def _batches(db: sqlite3.Connection, cohort: Cohort) -> Iterator[Iterator[list[str]]]:
    """Let the temporary table `cohort` hold one batch after the other."""
    db.execute("CREATE TEMP TABLE cohort (client TEXT)")
    db.execute("CREATE TEMP TABLE step (old INTEGER PRIMARY KEY, new INTEGER)")
    try:
        yield (_filled(db, batch) for batch in cohort)
    finally:
        db.execute("DROP TABLE cohort")
        db.execute("DROP TABLE step")


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
    query = f"SELECT count(*) FROM {_MINE} AND total <> {NOTHING_SPENT}"  # noqa: S608
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


def _total(db: sqlite3.Connection, amount: Amount) -> int:
    """Return the row of an amount among the totals."""
    texts = amount.texts()
    db.execute("INSERT OR IGNORE INTO totals VALUES (NULL, ?, ?)", texts)
    query = "SELECT id FROM totals WHERE epsilon = ? AND delta = ?"
    return int(db.execute(query, texts).fetchone()[0])


def _population(db: sqlite3.Connection, name: str) -> int:
    db.execute("INSERT OR IGNORE INTO populations (name) VALUES (?)", (name,))
    row = db.execute("SELECT id FROM populations WHERE name = ?", (name,)).fetchone()
    return int(row[0])


def cap(db: sqlite3.Connection, population: str) -> Amount | None:
    """Return the cap of a population, if one was set."""
    texts = ledger_chain.caps(db).get(population)
    return Amount.read(*texts) if texts else None


def set_cap(db: sqlite3.Connection, population: str, amount: Amount) -> None:
    """Set or replace the cap of a population, which is entered if it is new."""
    _population(db, population)
    ledger_chain.write_cap(db, population, *amount.texts())


def drop(db: sqlite3.Connection, release: str) -> None:
    """Delete a release that counts no more, and who was in it."""
    db.execute(
        "DELETE FROM members WHERE release ="
        " (SELECT number FROM releases WHERE release = ?)",
        (release,),
    )
    db.execute("DELETE FROM releases WHERE release = ?", (release,))


def balances(db: sqlite3.Connection, number: int) -> list[Balance]:
    """Return the distinct totals of a release's clients."""
    rows = db.execute(
        """SELECT id, epsilon, delta, n FROM totals JOIN (
          SELECT total, count(*) AS n FROM members m
          JOIN clients c ON c.number = m.client WHERE m.release = ? GROUP BY total
        ) ON total = id""",
        (number,),
    )
    return [Balance(id_, Amount.read(e, d), n) for id_, e, d, n in rows]


def check_room(
    found: Sequence[Balance], amount: Amount, cap: Amount, population: str
) -> None:
    """Refuse an ``amount`` that would lead any of the clients above the cap."""
    full = [b for b in found if not b.amount.plus(amount).within(cap)]
    if not full:
        return
    lacking, n = sum(b.n for b in full), sum(b.n for b in found)
    largest = max((b.amount for b in full), key=lambda a: (a.epsilon, a.delta))
    raise UserError(
        f"{lacking} of {n} clients of population {population!r} have no room for"
        f" {amount}: the cap is {cap} for each client, and the largest total is"
        f" {largest} already. Nothing was reserved. Leave these clients out"
        " (`curvote ledger export` lists who spent what), or raise the cap."
    )


def move(db: sqlite3.Connection, number: int, steps: Mapping[int, Amount]) -> None:
    """Give each client of a release the new total in place of the old one."""
    db.execute("CREATE TEMP TABLE step (old INTEGER PRIMARY KEY, new INTEGER)")
    for old, amount in steps.items():
        db.execute("INSERT INTO step VALUES (?, ?)", (old, _total(db, amount)))
    db.execute(
        """UPDATE clients SET total = (SELECT new FROM step WHERE old = total)
        WHERE number IN (SELECT client FROM members WHERE release = ?)""",
        (number,),
    )
    db.execute("DROP TABLE step")
