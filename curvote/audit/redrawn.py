"""What left, compared with what the message draws from the words that were given."""

from __future__ import annotations

import numpy as np

from curvote.audit.leaving import Left, People, Release
from curvote.audit.tape import Given, Mismatch
from curvote.chain.stage import Columns
from curvote.errors import UserError
from curvote.validate import FloatArray


def people_of(release: Release, n: int, seed: int) -> People:
    """Return ``n`` clients that a seed names."""
    return release.people(n, np.random.default_rng([seed, n]))


def drawn_from(
    release: Release, people: People, left: Left
) -> tuple[Columns, list[bytes]] | None:
    """Return the table before its rows were put in order, and the answers left over.

    None: no run of answers, used whole and once, leads to what left.
    """
    known = release.known(people)
    for start in range(len(left.asked)):
        entropy = Given(left.asked[start:])
        try:
            table = release.table(release.message.draw(release.task, known, entropy))
        except (Mismatch, UserError):
            continue
        if as_set(table) == as_set(left.rows):
            return table, left.asked[len(left.asked) - entropy.left :]
    return None


def as_set(table: Columns) -> bytes:
    """Return the rows in an order of their own: equal for tables of equal rows."""
    rows = matrix(table)
    return rows[np.lexsort(rows.T)].tobytes()


def matrix(table: Columns) -> FloatArray:
    """Return all columns side by side, by name, (n, k)."""
    columns = [np.asarray(table[name], dtype=np.float64) for name in sorted(table)]
    return np.hstack([c.reshape(len(c), -1) for c in columns])
