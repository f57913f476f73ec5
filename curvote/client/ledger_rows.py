"""What a reservation writes: the rows of a cohort, moved all together.

Every function runs inside a transaction that its caller has begun.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.client import ledger_chain
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_schema import NOTHING_SPENT
from curvote.errors import UserError
from curvote.identifier import normal

Clients = NDArray[np.int64] | NDArray[np.str_] | Sequence[str]


@dataclass(frozen=True)
class Balance:
    """A distinct total of a cohort's clients, and how many of them have it."""

    id: int
    amount: Amount
    n: int


def names(clients: Clients) -> list[str]:
    """Return the ids (n,) as text, sorted; none, empty or repeated: UserError.

    Messages name no id: they may end in a log that the server's side reads.
    """
    found = _texts(clients)
    if not found:
        raise UserError("clients is empty; a release concerns at least one client.")
    if {type(name) for name in found} != {str}:
        raise UserError(
            "clients must be one-dimensional: whole numbers or text, every id given."
        )
    _check_text(found)
    repeated = len(found) - len(set(found))
    if repeated:
        raise UserError(
            f"{repeated} of {len(found)} client ids stand in clients a second time;"
            " a release concerns each client once."
        )
    return sorted(found)  # so that the index of clients is filled in its own order


def _texts(clients: Clients) -> list[Any]:
    if isinstance(clients, str):  # a sequence of str, but never meant as one
        raise UserError("clients is a single text; give a sequence of ids.")
    if isinstance(clients, np.ndarray) and clients.ndim != 1:
        raise UserError(f"clients has shape {clients.shape}; it must be (n,).")
    if isinstance(clients, np.ndarray) and clients.dtype.kind in "iu":
        return list(map(str, clients.tolist()))
    return [_text(client) for client in clients]


def _text(client: Any) -> Any:
    """Return one id as text in its one spelling; what is none is left to be refused."""
    if isinstance(client, float) and client.is_integer():
        return str(int(client))
    return normal(str(client)) if isinstance(client, str) else client


def _check_text(found: list[str]) -> None:
    """Refuse what a database or a CSV file could not hold apart."""
    try:
        whole = "".join(found).encode()
    except UnicodeEncodeError:
        raise UserError("a client id holds a character that is no text.") from None
    if "" in found or b"\0" in whole:
        raise UserError("a client id is empty or holds a zero byte.")


def enter(
    db: sqlite3.Connection,
    release: str,
    row: Mapping[str, str | int | None],
    population: str,
    cohort: Sequence[str],
) -> int:
    """Insert a release, its clients where they are new, and who is in it.

    ``row`` holds the other columns of its row. Returns its number.
    """
    group = _population(db, population)
    columns = ", ".join(row)
    marks = ", ".join("?" * len(row))
    (number,) = db.execute(
        f"INSERT INTO releases ({columns}, release, population)"  # noqa: S608 - names of columns are ours
        f" VALUES ({marks}, ?, ?) RETURNING number",
        (*row.values(), release, group),
    ).fetchone()
    db.execute("CREATE TEMP TABLE cohort (client TEXT)")
    db.executemany("INSERT INTO cohort VALUES (?)", ((name,) for name in cohort))
    db.execute(
        """INSERT INTO clients (population, client, total)
        SELECT ?, client, ? FROM cohort WHERE true ON CONFLICT DO NOTHING""",
        (group, NOTHING_SPENT),
    )
    db.execute(  # CROSS JOIN fixes the order: each of the cohort is looked up
        """INSERT INTO members SELECT ?, number FROM cohort CROSS JOIN clients
        USING (client) WHERE population = ?""",
        (number, group),
    )
    db.execute("DROP TABLE cohort")
    return int(number)


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
        texts = amount.texts()
        db.execute("INSERT OR IGNORE INTO totals VALUES (NULL, ?, ?)", texts)
        db.execute(
            "INSERT INTO step SELECT ?, id FROM totals WHERE epsilon = ? AND delta = ?",
            (old, *texts),
        )
    db.execute(
        """UPDATE clients SET total = (SELECT new FROM step WHERE old = total)
        WHERE number IN (SELECT client FROM members WHERE release = ?)""",
        (number,),
    )
    db.execute("DROP TABLE step")
