"""What a reservation writes: the rows of a cohort, moved all together.

Every function runs inside a transaction that its caller has begun.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from curvote.client import ledger_chain
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_cohort import Cohort
from curvote.client.ledger_counting import Balance, Release, count, total
from curvote.errors import UserError


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
    before, digest = count(db, (number, group), cohort, release)
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
        db.execute("INSERT INTO step VALUES (?, ?)", (old, total(db, amount)))
    db.execute(
        """UPDATE clients SET total = (SELECT new FROM step WHERE old = total)
        WHERE number IN (SELECT client FROM members WHERE release = ?)""",
        (number,),
    )
    db.execute("DROP TABLE step")
