"""The privacy ledger: the durable record of what was released about each client.

A release is reserved before its noise is drawn and counts from then on; it is confirmed
when it was published, cancelled if its noise never left, and spent if nobody knows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.client import ledger_problems, ledger_rows
from curvote.client.ledger_amounts import Amount
from curvote.client.ledger_entries import (
    CANCELLED,
    CONFIRMED,
    RESERVED,
    SELECT,
    SPENT,
    Entry,
    Spent,
    read,
    total,
)
from curvote.client.ledger_rows import Clients
from curvote.client.ledger_schema import LEDGER, NOTHING_SPENT
from curvote.errors import InternalError, UserError
from curvote.privacy import Budget

Facts = Mapping[str, str | int | float]

__all__ = ["Clients", "Entry", "Facts", "Ledger", "Spent", "total"]


class Ledger:
    """The ledger in the SQLite file ``path``, which is created if there is none.

    Any number of processes may use one file at a time, each through a Ledger of its
    own (one thread each, never across a fork). A file that is damaged, foreign, newer
    or cannot be written is a UserError, at opening or later; a call that fails has
    changed nothing.

    Clients are known by their id within a population. Ids are compared as text, exactly
    as written: 7 and "7" are one client, "07" is another. The same person in two
    populations is two clients.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._db = LEDGER.connect(self.path)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is no error."""
        self._db.close()

    def reserve(
        self,
        release: str,
        clients: Clients,
        budget: Budget,
        *,
        population: str,
        cap: Budget | None,
        facts: Facts,
    ) -> None:
        """Count ``budget`` for every client, or for none if one of them lacks room.

        ``release`` is the digest that names the release, ``clients`` the ids (n,), each
        once. Every client's total in ``population``, this release included, must stay
        within ``cap``, epsilon and delta each (sequential composition; None: no limit),
        exact up to one part in 10^12 of the cap. Otherwise, and for ids that are empty
        or repeated: UserError. ``facts`` are small and public. A cancelled release may
        be reserved again; one that counts is an InternalError.
        """
        if not population or not release:
            raise UserError("a release needs a name and a population; one is empty.")
        cohort = ledger_rows.names(clients)
        need, limit = Amount.of(budget), Amount.of(cap) if cap else None
        row = _row(release, need, limit, facts) | {"n_clients": len(cohort)}
        with self._transaction("IMMEDIATE"):
            found = self.entry(release)
            if found and found.counts:
                raise InternalError(f"release {release} is {found.state} already")
            ledger_rows.drop(self._db, release)
            number = ledger_rows.enter(self._db, row, population, cohort)
            before = ledger_rows.balances(self._db, number)
            if limit:
                ledger_rows.check_room(before, need, limit, population)
            ledger_rows.move(
                self._db, number, {b.id: b.amount.plus(need) for b in before}
            )

    def confirm(self, release: str, *, place: str, digest: str) -> None:
        """Record that a reserved release was published at ``place``.

        ``digest`` names the published bytes. Again with the same place and digest:
        nothing happens. Any other state, place or digest: InternalError.
        """
        with self._transaction("IMMEDIATE"):
            found = self.entry(release)
            if found and (found.place, found.digest) == (place, digest):
                return
            self._settle(release, CONFIRMED, place=place, digest=digest)

    def cancel(self, release: str) -> None:
        """Give a reserved release back, as its noise never left; else InternalError."""
        with self._transaction("IMMEDIATE"):
            number, amount = self._settle(release, CANCELLED)
            before = ledger_rows.balances(self._db, number)
            ledger_rows.move(
                self._db, number, {b.id: b.amount.minus(amount) for b in before}
            )

    def spend(self, release: str, reason: str) -> None:
        """Let a reserved release count for ever, as nobody knows whether it left.

        Any other state: InternalError.
        """
        with self._transaction("IMMEDIATE"):
            self._settle(release, SPENT, reason=reason)

    def _settle(
        self,
        release: str,
        state: str,
        *,
        place: str | None = None,
        digest: str | None = None,
        reason: str | None = None,
    ) -> tuple[int, Amount]:
        """Leave the state reserved; return the release's number and budget."""
        row = self._db.execute(
            """UPDATE releases SET state = ?, settled = ?, place = ?, digest = ?,
            reason = ? WHERE release = ? AND state = 'reserved'
            RETURNING number, epsilon, delta""",
            (state, _now(), place, digest, reason, release),
        ).fetchone()
        if row is None:
            found = self.entry(release)
            now = f"is {found.state}" if found else "is not in the ledger"
            raise InternalError(f"release {release} {now}: it cannot become {state}")
        return row[0], Amount.read(*row[1:])

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
            str(client),
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

        SQLite's own checks, the states, the numbers of clients, and all totals and caps
        once more, added up from the first release on.
        """
        with self._transaction("DEFERRED"):
            return ledger_problems.problems(self._db)

    def _entries(self, rest: str, *values: str) -> list[Entry]:
        with LEDGER.errors(self.path):
            return [read(row) for row in self._rows(f"{SELECT} {rest}", *values)]

    def _rows(self, query: str, *values: str | int) -> list[Any]:
        with LEDGER.errors(self.path):
            return self._db.execute(query, values).fetchall()

    def _transaction(
        self, kind: Literal["IMMEDIATE", "DEFERRED"]
    ) -> AbstractContextManager[None]:
        return LEDGER.transaction(self._db, self.path, kind)


def _row(
    release: str, need: Amount, limit: Amount | None, facts: Facts
) -> dict[str, str | int | None]:
    """Return the columns of a new release."""
    if any(isinstance(v, float) and not math.isfinite(v) for v in facts.values()):
        raise InternalError(f"release {release}: a fact is not finite")
    epsilon, delta = need.texts()
    cap_epsilon, cap_delta = limit.texts() if limit else (None, None)
    return {
        "release": release,
        "state": RESERVED,
        "epsilon": epsilon,
        "delta": delta,
        "cap_epsilon": cap_epsilon,
        "cap_delta": cap_delta,
        "facts": json.dumps(dict(facts), sort_keys=True),
        "reserved": _now(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
