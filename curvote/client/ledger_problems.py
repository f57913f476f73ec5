"""Checks and queries of a ledger: integrity, entries, totals, caps and chain."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.client import ledger_chain
from curvote.client.ledger_amounts import Amount

Numbers = NDArray[np.int64]


def ledger_problems(db: sqlite3.Connection) -> list[str]:
    """Return all problems of a ledger, one line each.

    What SQLite itself finds comes alone: nothing else can be trusted then.
    """
    return [*_integrity_errors(db), *_broken_references(db)] or find_disagreements(db)


def find_disagreements(db: sqlite3.Connection) -> list[str]:
    """Return where entries, totals and chain disagree, a line each."""
    sums = [*_wrong_counts(db), *_foreign_members(db), *_wrong_sums(db)]
    return [*sums, *ledger_chain.chain_problems(db)]


def _integrity_errors(db: sqlite3.Connection) -> Iterator[str]:
    for (line,) in db.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"integrity: {line}"


def _broken_references(db: sqlite3.Connection) -> Iterator[str]:
    rows = db.execute("PRAGMA foreign_key_check").fetchall()
    if rows:
        table, _, parent, _ = rows[0]
        yield f"{len(rows)} rows name what is not there, the first in {table}: {parent}"


def _wrong_counts(db: sqlite3.Connection) -> Iterator[str]:
    query = """SELECT release, n_clients,
        (SELECT count(*) FROM members m WHERE m.release = r.number) AS n
        FROM releases r WHERE n <> n_clients"""
    for release, expected, counted in db.execute(query):
        yield (
            f"release {release}: recorded about {expected} clients but names {counted}"
        )


def _foreign_members(db: sqlite3.Connection) -> Iterator[str]:
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
    for number, release, *texts in db.execute(query).fetchall():
        clients = _read_column(
            db, "SELECT client FROM members WHERE release = ? ORDER BY client", number
        )
        _add_amount(sums, clients, amounts, Amount.from_texts(*texts[:2]))
        if texts[2] is not None:
            above = _count_above(sums[clients], amounts, Amount.from_texts(*texts[2:]))
            if above:
                yield f"release {release}: {above} clients are above its cap"
    yield from _wrong_totals(db, sums, amounts)


def _read_column(db: sqlite3.Connection, query: str, *values: Any) -> Numbers:
    rows = db.execute(query, values)
    return np.fromiter((value for (value,) in rows), dtype=np.int64)


def _add_amount(
    sums: Numbers, clients: Numbers, amounts: list[Amount], more: Amount
) -> None:
    """Add an amount to the sums of some clients."""
    distinct, which = np.unique(sums[clients], return_inverse=True)
    places = {amount: i for i, amount in enumerate(amounts)}
    after = []
    for old in distinct:
        amount = amounts[old].plus(more)
        if amount not in places:
            places[amount] = len(amounts)
            amounts.append(amount)
        after.append(places[amount])
    sums[clients] = np.array(after, dtype=np.int64)[which]


def _count_above(sums: Numbers, amounts: list[Amount], cap: Amount) -> int:
    distinct, n = np.unique(sums, return_counts=True)
    counted = zip(distinct, n, strict=True)
    return sum(int(k) for i, k in counted if not amounts[i].within(cap))


def _wrong_totals(
    db: sqlite3.Connection, sums: Numbers, amounts: list[Amount]
) -> Iterator[str]:
    numbers = _read_column(db, "SELECT number FROM clients ORDER BY number")
    totals = _read_column(db, "SELECT total FROM clients ORDER BY number")
    rows = db.execute("SELECT id, epsilon, delta FROM totals").fetchall()
    stored = {id_: Amount.from_texts(*texts) for id_, *texts in rows}
    ids, places = np.unique(totals, return_inverse=True)  # whatever stands there
    width = max(len(ids), 1)  # a pair in one number: it sorts faster
    pairs, n = np.unique(sums[numbers] * width + places, return_counts=True)
    counted = zip(*np.divmod(pairs, width), n.tolist(), strict=True)
    wrong = sum(
        k
        for amount_index, place, k in counted
        if amounts[amount_index] != stored.get(int(ids[place]))
    )
    if wrong:
        yield f"the totals kept of {wrong} clients are not the sums of their releases"
