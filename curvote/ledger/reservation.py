"""Reservations: a cohort entered in batches, with each client's new total.

Every function runs inside a transaction that its caller has begun.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import InternalError, UserError
from curvote.ledger import chain
from curvote.ledger.amounts import RESERVED, Amount, ReleaseFacts
from curvote.ledger.cohort import BATCH_SIZE, Cohort
from curvote.ledger.schema import ZERO_TOTAL_ID


@dataclass(frozen=True)
class Balance:
    """A distinct total of a cohort's clients, and how many have it."""

    id: int
    amount: Amount
    n: int


@dataclass(frozen=True)
class NewRelease:
    """A release to be reserved, with its amount, cap and facts."""

    name: str
    population: str
    amount: Amount
    cap: Amount | None
    facts: ReleaseFacts

    def columns(self) -> dict[str, str | int | None]:
        """Return the columns of the release's row."""
        floats = (v for v in self.facts.values() if isinstance(v, float))
        if not all(map(math.isfinite, floats)):
            raise InternalError("a fact of a release is not finite")
        epsilon, delta = self.amount.to_texts()
        cap_epsilon, cap_delta = self.cap.to_texts() if self.cap else (None, None)
        return {
            "state": RESERVED,
            "epsilon": epsilon,
            "delta": delta,
            "cap_epsilon": cap_epsilon,
            "cap_delta": cap_delta,
            "facts": json.dumps(dict(self.facts), sort_keys=True),
            "reserved": chain.utc_now(),
        }


def enter_cohort(
    db: Connection, keys: tuple[int, int], cohort: Cohort, release: NewRelease
) -> tuple[list[Balance], str]:
    """Insert the clients of a release, each with its new total.

    One batch after the other: ten million clients need the memory of one batch. Who is
    new is entered with the new total at once. Where somebody lacks room the others are
    only counted: the caller will refuse. Returns the distinct totals before, and the
    digest of the cohort.
    """
    steps, digest = _TotalSteps(db, release), chain.CohortDigest()
    number, group = keys
    with _cohort_batches(db, cohort) as batches:
        for batch in batches:
            digest.add(batch)
            db.execute("DELETE FROM mine")
            db.execute(_SELECT_KNOWN, (group,))
            totals = db.execute(_TOTALS).fetchall()
            for old, n in totals:
                steps.add(old, n)
            if new := len(batch) - sum(n for _, n in totals):
                steps.add(ZERO_TOTAL_ID, new)
            if steps.fit and totals:
                db.execute(_MOVE)
                members = "INSERT INTO members SELECT ?, number FROM mine"
                db.execute(members, (number,))
            if steps.fit and new:
                query = "SELECT coalesce(max(number), 0) FROM clients"
                (last,) = db.execute(query).fetchone()
                db.execute(_NEWCOMERS, (group, steps.after(ZERO_TOTAL_ID)))
                members = "INSERT INTO members SELECT ?, number FROM clients"
                db.execute(f"{members} WHERE number > ?", (number, last))
        return steps.before(), digest.text()


# `cohort` is one batch, `mine` who of them is known; CROSS JOIN fixes the order: each
# of the batch is looked up, once.
_KNOWN_CLIENTS: Final = "cohort CROSS JOIN clients USING (client) WHERE population = ?"
_SELECT_KNOWN: Final = f"INSERT INTO mine SELECT number, total FROM {_KNOWN_CLIENTS}"  # noqa: S608
_TOTALS: Final = "SELECT total, count(*) FROM mine GROUP BY total"
_MOVE: Final = """UPDATE clients SET total = (SELECT new FROM step WHERE old = total)
WHERE number IN (SELECT number FROM mine)"""
_NEWCOMERS: Final = """INSERT INTO clients (population, client, total)
SELECT ?1, client, ?2 FROM cohort WHERE true ON CONFLICT DO NOTHING"""


class _TotalSteps:
    """The distinct totals of a cohort, each with the total after a release.

    ``fit`` says whether all of them were within the cap, so far.
    """

    def __init__(self, db: Connection, release: NewRelease) -> None:
        self._db, self._release = db, release
        self._totals: dict[int, tuple[Amount, int]] = {}
        self._n: dict[int, int] = {}
        self.fit = True

    def add(self, old: int, n: int) -> None:
        """Count ``n`` clients with the total ``old``."""
        if old not in self._totals:
            query = "SELECT epsilon, delta FROM totals WHERE id = ?"
            before = Amount.from_texts(*self._db.execute(query, (old,)).fetchone())
            amount, cap = before.plus(self._release.amount), self._release.cap
            self.fit = self.fit and (cap is None or amount.within(cap))
            after = total_id(self._db, amount)
            self._db.execute("INSERT INTO step VALUES (?, ?)", (old, after))
            self._totals[old] = before, after
        self._n[old] = self._n.get(old, 0) + n

    def after(self, old: int) -> int:
        """Return the total after the release for an old total."""
        return self._totals[old][1]

    def before(self) -> list[Balance]:
        """Return the totals before the release, and how many had each."""
        return [Balance(old, self._totals[old][0], n) for old, n in self._n.items()]


@contextmanager
def _cohort_batches(db: Connection, cohort: Cohort) -> Iterator[Iterator[list[str]]]:
    """Yield batches of a cohort, each in the temporary table `cohort`."""
    db.execute("CREATE TEMP TABLE cohort (client TEXT)")
    db.execute("CREATE TEMP TABLE mine (number INTEGER PRIMARY KEY, total INTEGER)")
    db.execute("CREATE TEMP TABLE step (old INTEGER PRIMARY KEY, new INTEGER)")

    def fill_batches() -> Iterator[list[str]]:
        for batch in cohort:
            db.execute("DELETE FROM cohort")
            db.executemany("INSERT INTO cohort VALUES (?)", ((name,) for name in batch))
            yield batch

    try:
        yield fill_batches()
    finally:
        for table in ("cohort", "mine", "step"):
            db.execute(f"DROP TABLE {table}")


def count_overlap(db: Connection, population: str, cohort: Cohort) -> int:
    """Return how many of a cohort have spent anything in a population."""
    cursor = db.execute("SELECT id FROM populations WHERE name = ?", (population,))
    group = cursor.fetchone()
    if group is None:
        return 0
    query = f"SELECT count(*) FROM {_KNOWN_CLIENTS} AND total <> {ZERO_TOTAL_ID}"  # noqa: S608
    with _cohort_batches(db, cohort) as batches:
        return sum(db.execute(query, group).fetchone()[0] for _ in batches)


def find_newcomers(db: Connection, population: str, cohort: Cohort) -> list[str]:
    """Return the ids of a cohort that are new to a population."""
    query = """SELECT client FROM cohort WHERE NOT EXISTS (
        SELECT 1 FROM clients WHERE clients.client = cohort.client
        AND population = (SELECT id FROM populations WHERE name = ?))"""
    with _cohort_batches(db, cohort) as batches:
        rows = (row for _ in batches for row in db.execute(query, (population,)))
        return [name for (name,) in rows]


def all_clients(db: Connection, population: str) -> Iterator[NDArray[np.str_]]:
    """Yield all clients of a population, a batch at a time."""
    query = """SELECT client FROM clients JOIN populations ON id = population
        WHERE name = ?"""
    cursor = db.execute(query, (population,))
    while batch := cursor.fetchmany(BATCH_SIZE):
        yield np.array([name for (name,) in batch], dtype=np.str_)


def total_id(db: Connection, amount: Amount) -> int:
    """Return the row id of an amount in the table of totals."""
    texts = amount.to_texts()
    db.execute("INSERT OR IGNORE INTO totals VALUES (NULL, ?, ?)", texts)
    query = "SELECT id FROM totals WHERE epsilon = ? AND delta = ?"
    return int(db.execute(query, texts).fetchone()[0])


def enter_release(db: Connection, release: NewRelease, cohort: Cohort) -> list[Balance]:
    """Insert a reserved release with its clients and its chain link.

    One of its name that was cancelled goes. Returns the distinct totals of its clients
    before.
    """
    delete_release(db, release.name)
    row = release.columns() | {"n_clients": cohort.n}
    group = _population_id(db, release.population)
    names = ", ".join(row)
    marks = ", ".join("?" * len(row))
    (number,) = db.execute(
        f"INSERT INTO releases ({names}, release, population)"  # noqa: S608 - names of columns are ours
        f" VALUES ({marks}, ?, ?) RETURNING number",
        (*row.values(), release.name, group),
    ).fetchone()
    before, digest = enter_cohort(db, (number, group), cohort, release)
    about = {"population": release.population, "clients": digest}
    chain.append_event(db, "reserved", release.name, **row, **about)
    return before


def settle_release(
    db: Connection, release: str, state: str, **details: str
) -> tuple[int, Amount] | None:
    """Move a release out of the state reserved; return number and amount.

    None: it is not reserved.
    """
    values: dict[str, str | None] = dict.fromkeys(chain.SETTLEMENT_COLUMNS)
    values |= {"state": state, "settled": chain.utc_now(), **details}
    row = db.execute(
        """UPDATE releases SET state = ?, settled = ?, place = ?, digest = ?,
        reason = ? WHERE release = ? AND state = 'reserved'
        RETURNING number, epsilon, delta""",
        (*values.values(), release),
    ).fetchone()
    if row is None:
        return None
    chain.append_event(db, "settled", release, **values)
    return row[0], Amount.from_texts(*row[1:])


def _population_id(db: Connection, name: str) -> int:
    db.execute("INSERT OR IGNORE INTO populations (name) VALUES (?)", (name,))
    row = db.execute("SELECT id FROM populations WHERE name = ?", (name,)).fetchone()
    return int(row[0])


def read_cap(db: Connection, population: str) -> Amount | None:
    """Return the cap of a population, or None."""
    texts = chain.read_caps(db).get(population)
    return Amount.from_texts(*texts) if texts else None


def write_population_cap(db: Connection, population: str, amount: Amount) -> None:
    """Set or replace the cap of a population, new or not."""
    _population_id(db, population)
    chain.write_cap(db, population, *amount.to_texts())


def delete_release(db: Connection, release: str) -> None:
    """Delete a release that does not count, and its memberships."""
    number = "(SELECT number FROM releases WHERE release = ?)"
    db.execute(f"DELETE FROM members WHERE release = {number}", (release,))  # noqa: S608
    db.execute("DELETE FROM releases WHERE release = ?", (release,))


def release_balances(db: Connection, number: int) -> list[Balance]:
    """Return the distinct totals of a release's clients."""
    rows = db.execute(
        """SELECT id, epsilon, delta, n FROM totals JOIN (
          SELECT total, count(*) AS n FROM members m
          JOIN clients c ON c.number = m.client WHERE m.release = ? GROUP BY total
        ) ON total = id""",
        (number,),
    )
    return [Balance(id_, Amount.from_texts(e, d), n) for id_, e, d, n in rows]


def check_room(
    balances: Sequence[Balance], amount: Amount, cap: Amount, population: str
) -> None:
    """Refuse an ``amount`` that would exceed the cap of any client."""
    above = [b for b in balances if not b.amount.plus(amount).within(cap)]
    if not above:
        return
    lacking, n = sum(b.n for b in above), sum(b.n for b in balances)
    largest = max((b.amount for b in above), key=lambda a: (a.epsilon, a.delta))
    raise UserError(
        f"{lacking} of {n} clients of population {population!r} have no room for"
        f" {amount}: the cap is {cap} for each client, and the largest total is"
        f" {largest} already. Nothing was reserved. Leave these clients out"
        " (`curvote ledger export` lists who spent what), or raise the cap."
    )


def move_totals(db: Connection, number: int, steps: Mapping[int, Amount]) -> None:
    """Replace the totals of a release's clients."""
    db.execute("CREATE TEMP TABLE step (old INTEGER PRIMARY KEY, new INTEGER)")
    for old, amount in steps.items():
        db.execute("INSERT INTO step VALUES (?, ?)", (old, total_id(db, amount)))
    db.execute(
        """UPDATE clients SET total = (SELECT new FROM step WHERE old = total)
        WHERE number IN (SELECT client FROM members WHERE release = ?)""",
        (number,),
    )
    db.execute("DROP TABLE step")
