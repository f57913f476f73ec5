"""Checks of whole releases: row order, random words, forks, envelopes, refusals."""

from __future__ import annotations

import math

import numpy as np

from curvote.audit.leaving import (
    People,
    Release,
    ReleaseOutcome,
    redraw_table,
    seeded_people,
    table_matrix,
)
from curvote.audit.tape import Tape
from curvote.validate import FloatArray

# Standard deviations that a rank correlation must not exceed.
MOST = 7.0
# Orders of small tables that are looked at; from how many rows on one is enough.
ORDERS = 120
LARGE = 1000


def check_order(release: Release, seed: int) -> str | None:
    """Check that the rows' order tells neither senders nor labels."""
    if not release.ordered or not release.shuffled:
        return None
    for n in release.sizes:
        if n > 1:
            looked = _check_positions if n < LARGE else _check_sequence
            why = _order_bits_fault(release, n, seed) or looked(release, n, seed)
            if why:
                return f"{n} clients: {why}"
    return None


def _order_bits_fault(release: Release, n: int, seed: int) -> str | None:
    """Return a fault if the order was drawn from too few bits."""
    people = seeded_people(release, n, seed)
    redrawn = redraw_table(release, people, release.leave(people, Tape(seed)))
    bits = 8 * len(b"".join(redrawn.after)) if redrawn else 0
    due = math.lgamma(n + 1) / math.log(2)
    return (
        None if bits >= due else f"the order is drawn from {bits} bits, not {due:.0f}"
    )


def place_rows(
    release: Release, people: People, seed: int
) -> tuple[FloatArray, ReleaseOutcome]:
    """Return the place of each client's row, (n,), and the release."""
    outcome = release.leave(people, Tape(seed))
    redrawn = redraw_table(release, people, outcome)
    if redrawn is None:
        return np.full(len(people), np.nan), outcome
    if not release.shuffled:
        rows = len(next(iter(outcome.rows.values())))
        return np.arange(rows, dtype=np.float64), outcome
    before, after = (table_matrix(table) for table in (redrawn.table, outcome.rows))
    # Equal rows may be anybody's of those who sent them.
    ties = np.random.default_rng(seed).permutation(len(people))
    ranks = [np.lexsort((ties, *before.T)), np.lexsort(after.T)]
    place = np.empty(len(people))
    place[ranks[0]] = ranks[1]
    return place, outcome


def _check_positions(release: Release, n: int, seed: int) -> str | None:
    """Check over many orders that each client may stand anywhere."""
    people = seeded_people(release, n, seed)
    runs = [place_rows(release, people, seed + 10 + i) for i in range(ORDERS)]
    places = np.array([place for place, _ in runs])
    if np.isnan(places).any():
        return "no order of the message's rows is what left"
    rows = np.concatenate([table_matrix(outcome.rows) for _, outcome in runs])
    if rows.shape[1] == 1:
        return _has_trend(np.tile(np.arange(n), ORDERS), rows[:, 0], "the only number")
    hits = np.stack([np.bincount(p.astype(int), minlength=n) for p in places.T])
    # A client's place is binomial: bounded as if normal, with room for its tail.
    most = MOST * math.sqrt(ORDERS / n) + 5
    if np.abs(hits - ORDERS / n).max() > most:
        return "a client's row stands at one place too often"
    return _correlated_fact(release, people, places)


def _correlated_fact(
    release: Release, people: People, places: FloatArray
) -> str | None:
    """Return the fact about clients that the places follow, if any."""
    truths = {"the list": np.arange(len(people)), "the label": people.labels}
    z = release.client_data(people).z.T
    truths |= {f"coordinate {i}": column for i, column in enumerate(z)}
    for name, of in truths.items():
        if why := _has_trend(places.ravel(), np.tile(of, len(places)), name):
            return why
    return None


def _check_sequence(release: Release, n: int, seed: int) -> str | None:
    """Check one long order for trends and runs."""
    people = seeded_people(release, n, seed)
    place, outcome = place_rows(release, people, seed + 10)
    rows = table_matrix(outcome.rows)
    for name, column in enumerate(rows.T):
        if why := _has_trend(np.arange(n, dtype=np.float64), column, f"number {name}"):
            return why
    if rows.shape[1] == 1:
        return None
    if np.isnan(place).any():
        return "no order of the message's rows is what left"
    if (np.diff(place) == 1).sum() > 40:
        return "neighbours in the clients' list are neighbours in the table"
    return _correlated_fact(release, people, place[None])


def _has_trend(place: FloatArray, values: FloatArray, name: str) -> str | None:
    """Say whether places and values are correlated beyond chance."""
    ranks = np.unique(values, return_inverse=True)[1]
    with np.errstate(invalid="ignore"):  # NaN where one of them is constant
        z = abs(np.corrcoef(place, ranks)[0, 1]) * math.sqrt(len(place))
    if not z > MOST:
        return None
    return f"the order follows {name} ({z:.0f} standard deviations)"
