"""Whether the order of a table's rows tells anything about the clients."""

from __future__ import annotations

import math

import numpy as np

from curvote.audit.leaving import Left, People, Release, drawn_from, matrix, people_of
from curvote.audit.tape import Tape
from curvote.validate import FloatArray

# Standard deviations that a rank correlation must not exceed.
MOST = 7.0
# Orders of small tables that are looked at; from how many rows on one is enough.
ORDERS = 120
LARGE = 1000


def order(release: Release, seed: int) -> str | None:
    """Ask whether the rows' order tells who sent which, or which label they have."""
    if not release.ordered or not release.shuffled:
        return None
    for n in release.sizes:
        if n > 1:
            looked = _places if n < LARGE else _sequence
            why = _guessed(release, n, seed) or looked(release, n, seed)
            if why:
                return f"{n} clients: {why}"
    return None


def _guessed(release: Release, n: int, seed: int) -> str | None:
    """Say whether the order was drawn from fewer bits than tell n! orders apart."""
    people = people_of(release, n, seed)
    found = drawn_from(release, people, release.leave(people, Tape(seed)))
    bits = 8 * len(b"".join(found.after)) if found else 0
    due = math.lgamma(n + 1) / math.log(2)
    return (
        None if bits >= due else f"the order is drawn from {bits} bits, not {due:.0f}"
    )


def placed(release: Release, people: People, seed: int) -> tuple[FloatArray, Left]:
    """Return the place of each client's row, (n,), and the release."""
    left = release.leave(people, Tape(seed))
    found = drawn_from(release, people, left)
    if found is None:
        return np.full(len(people), np.nan), left
    if not release.shuffled:
        rows = len(next(iter(left.rows.values())))
        return np.arange(rows, dtype=np.float64), left
    before, after = (matrix(table) for table in (found.table, left.rows))
    # Equal rows may be anybody's of those who sent them.
    ties = np.random.default_rng(seed).permutation(len(people))
    ranks = [np.lexsort((ties, *before.T)), np.lexsort(after.T)]
    place = np.empty(len(people))
    place[ranks[0]] = ranks[1]
    return place, left


def _places(release: Release, n: int, seed: int) -> str | None:
    """Look at many orders of few rows: each client may stand anywhere."""
    people = people_of(release, n, seed)
    runs = [placed(release, people, seed + 10 + i) for i in range(ORDERS)]
    places = np.array([place for place, _ in runs])
    if np.isnan(places).any():
        return "no order of the message's rows is what left"
    rows = np.concatenate([matrix(left.rows) for _, left in runs])
    if rows.shape[1] == 1:
        return _trend(np.tile(np.arange(n), ORDERS), rows[:, 0], "the only number")
    hits = np.stack([np.bincount(p.astype(int), minlength=n) for p in places.T])
    # A client's place is binomial: bounded as if normal, with room for its tail.
    most = MOST * math.sqrt(ORDERS / n) + 5
    if np.abs(hits - ORDERS / n).max() > most:
        return "a client's row stands at one place too often"
    return _follows(release, people, places)


def _follows(release: Release, people: People, places: FloatArray) -> str | None:
    """Say which fact about the clients the places (runs, n) go along with, if any."""
    truths = {"the list": np.arange(len(people)), "the label": people.labels}
    z = release.known(people).z.T
    truths |= {f"coordinate {i}": column for i, column in enumerate(z)}
    for name, of in truths.items():
        if why := _trend(places.ravel(), np.tile(of, len(places)), name):
            return why
    return None


def _sequence(release: Release, n: int, seed: int) -> str | None:
    """Look at one order of many rows: no trend in it, and no runs."""
    people = people_of(release, n, seed)
    place, left = placed(release, people, seed + 10)
    rows = matrix(left.rows)
    for name, column in enumerate(rows.T):
        if why := _trend(np.arange(n, dtype=np.float64), column, f"number {name}"):
            return why
    if rows.shape[1] == 1:
        return None
    if np.isnan(place).any():
        return "no order of the message's rows is what left"
    if (np.diff(place) == 1).sum() > 40:
        return "neighbours in the clients' list are neighbours in the table"
    return _follows(release, people, place[None])


def _trend(place: FloatArray, values: FloatArray, name: str) -> str | None:
    """Say whether places and values are correlated beyond chance."""
    ranks = np.unique(values, return_inverse=True)[1]
    with np.errstate(invalid="ignore"):  # NaN where one of them is constant
        z = abs(np.corrcoef(place, ranks)[0, 1]) * math.sqrt(len(place))
    if not z > MOST:
        return None
    return f"the order follows {name} ({z:.0f} standard deviations)"
