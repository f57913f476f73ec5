"""Rows of reservations: releases, settlements, caps and moved totals.

Every function runs inside a transaction that its caller has begun.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from curvote.client import ledger_chain
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_cohort import Cohort
from curvote.client.ledger_counting import Balance, NewRelease, enter_cohort, total_id
from curvote.errors import UserError


def enter_release(
    db: sqlite3.Connection, release: NewRelease, cohort: Cohort
) -> list[Balance]:
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
    ledger_chain.append_event(db, "reserved", release.name, **row, **about)
    return before


def settle_release(
    db: sqlite3.Connection, release: str, state: str, **details: str
) -> tuple[int, Amount] | None:
    """Move a release out of the state reserved; return number and amount.

    None: it is not reserved.
    """
    values: dict[str, str | None] = dict.fromkeys(ledger_chain.SETTLEMENT_COLUMNS)
    values |= {"state": state, "settled": ledger_chain.utc_now(), **details}
    row = db.execute(
        """UPDATE releases SET state = ?, settled = ?, place = ?, digest = ?,
        reason = ? WHERE release = ? AND state = 'reserved'
        RETURNING number, epsilon, delta""",
        (*values.values(), release),
    ).fetchone()
    if row is None:
        return None
    ledger_chain.append_event(db, "settled", release, **values)
    return row[0], Amount.from_texts(*row[1:])


def _population_id(db: sqlite3.Connection, name: str) -> int:
    db.execute("INSERT OR IGNORE INTO populations (name) VALUES (?)", (name,))
    row = db.execute("SELECT id FROM populations WHERE name = ?", (name,)).fetchone()
    return int(row[0])


def read_cap(db: sqlite3.Connection, population: str) -> Amount | None:
    """Return the cap of a population, or None."""
    texts = ledger_chain.read_caps(db).get(population)
    return Amount.from_texts(*texts) if texts else None


def write_population_cap(
    db: sqlite3.Connection, population: str, amount: Amount
) -> None:
    """Set or replace the cap of a population, new or not."""
    _population_id(db, population)
    ledger_chain.write_cap(db, population, *amount.to_texts())


def delete_release(db: sqlite3.Connection, release: str) -> None:
    """Delete a release that does not count, and its memberships."""
    db.execute(
        "DELETE FROM members WHERE release ="
        " (SELECT number FROM releases WHERE release = ?)",
        (release,),
    )
    db.execute("DELETE FROM releases WHERE release = ?", (release,))


def release_balances(db: sqlite3.Connection, number: int) -> list[Balance]:
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


def move_totals(
    db: sqlite3.Connection, number: int, steps: Mapping[int, Amount]
) -> None:
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
