"""The checks of whole releases: where words come from, what the order says, who sees.

Each compares what left with what the audited message draws from the very words that the
operating system gave. So a release can add nothing to the message and take nothing off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from curvote.audit import interior, lags, message_residuals
from curvote.audit.leaving import Left, People, Release
from curvote.audit.row import Finding
from curvote.audit.tape import Given, Mismatch, Tape
from curvote.errors import UserError
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.stage import Columns
from curvote.validate import FloatArray

ALPHA = 1e-8
# Standard deviations that a rank correlation must not exceed.
MOST = 7.0
# Rows of small tables that are drawn in all, and how many orders are looked at.
ROWS = 1500
ORDERS = 120
LARGE = 1000
# What messages of one noised bit are made of.
BITS = {"label", "learner", "positive", "none other"}


def every(release: Release, samples: int, seed: int) -> list[Finding]:
    """Return the finding of each check; without ``samples`` only those of one draw."""
    checks: list[Callable[[Release, int], str | None]] = [
        source,
        words,
        forks,
        observables,
    ]
    if samples:
        checks += [order, payload]
    return [Finding(check.__name__, check(release, seed)) for check in checks]


def _people(release: Release, n: int, seed: int) -> People:
    return release.people(n, np.random.default_rng([seed, n]))


def source(release: Release, seed: int) -> str | None:
    """Ask whether all that is random came from the operating system, just now.

    The same words lead to the same bytes, at another time, in another process and
    whatever other generators were seeded with; other words to other bytes.
    """
    for n in release.sizes:
        people = _people(release, n, seed)
        one, again, other = (
            release.leave(people, Tape(words), world=world)
            for words, world in ((seed, 0), (seed, 1), (seed + 1, 0))
        )
        if one.data != again.data or one.asked != again.asked:
            return f"{n} clients: the same system words lead to other bytes"
        if not b"".join(one.asked):
            return f"{n} clients: nothing was asked of the operating system"
        share = _shared(one.rows, other.rows)
        if share:
            return f"{n} clients: {share:.0%} of the numbers ignore the system's words"
    return None


def _shared(one: Columns, other: Columns) -> float:
    """Return the largest share of numbers in a column that two releases have alike."""
    continuous = [name for name, v in one.items() if v.dtype.kind == "f" and v.size]
    shares = [float(np.isin(one[name], other[name]).mean()) for name in continuous]
    return max((share for share in shares if share > 0.05), default=0.0)


def words(release: Release, seed: int) -> str | None:
    """Ask whether each number is what the message makes of fresh 64-bit words."""
    for n in release.sizes:
        people = _people(release, n, seed)
        left = release.leave(people, Tape(seed + 2))
        if drawn_from(release, people, left) is None:
            return (
                f"{n} clients: the bytes are not those that the message draws from"
                " the words of the operating system, 64 bits each"
            )
    return _deciding(release, seed)


def _deciding(release: Release, seed: int) -> str | None:
    """Say whether a message of one bit is settled by less than its whole word.

    Chance does not show that: so the word is the one at which the answer changes.
    """
    if not set(release.message.payload.model_fields) < BITS:
        return None
    people = _people(release, 1, seed)
    threshold = BinaryRR(epsilon=release.task.epsilon).threshold
    for off in (-(1 << 31), -1, 0, 1, 1 << 31):
        left = release.leave(people, Tape(word=threshold + off))
        if drawn_from(release, people, left) is None:
            return f"the answer changes at another word than the threshold ({off:+d})"
    return None


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
        if _sorted(table) == _sorted(left.rows):
            return table, left.asked[len(left.asked) - entropy.left :]
    return None


def _sorted(table: Columns) -> bytes:
    rows = _matrix(table)
    return rows[np.lexsort(rows.T)].tobytes()


def _matrix(table: Columns) -> FloatArray:
    columns = [np.asarray(table[name], dtype=np.float64) for name in sorted(table)]
    return np.hstack([c.reshape(len(c), -1) for c in columns])


def forks(release: Release, seed: int) -> str | None:
    """Ask whether children of one fork, and their parent, use words of their own."""
    people = _people(release, release.sizes[0], seed)
    family = release.forked(people, 2)
    if any(drawn_from(release, people, left) is None for left in family):
        return "after a fork the bytes are not drawn from fresh words of the system"
    taken = [b"".join(left.asked) for left in family]
    if len(set(taken)) < len(taken):
        return "a child of a fork was given the words of its parent or its sibling"
    shared = max(_shared(family[i].rows, family[j].rows) for i, j in _pairs(family))
    return (
        f"processes of one fork share {shared:.0%} of their noise" if shared else None
    )


def _pairs(family: list[Left]) -> Iterator[tuple[int, int]]:
    yield from ((i, j) for j in range(len(family)) for i in range(j))


def observables(release: Release, seed: int) -> str | None:
    """Ask whether anything but the noised numbers tells two records apart."""
    for name, one, other in release.neighbours():
        seen = [dict(release.leave(p, Tape(seed)).facts) for p in (one, other)]
        told = [fact for fact in seen[0].keys() | seen[1] if _differs(fact, seen)]
        if told:
            values = " and ".join(repr(s.get(min(told)))[:60] for s in seen)
            return f"{name}: {min(told)} tells it: {values}"
    return None


def _differs(fact: str, seen: list[dict[str, object]]) -> bool:
    return seen[0].get(fact) != seen[1].get(fact)


def order(release: Release, seed: int) -> str | None:
    """Ask whether the rows' order tells who sent which, or which label they have."""
    if not release.ordered:
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
    people = _people(release, n, seed)
    found = drawn_from(release, people, release.leave(people, Tape(seed)))
    bits = 8 * len(b"".join(found[1])) if found else 0
    due = math.lgamma(n + 1) / math.log(2)
    return (
        None if bits >= due else f"the order is drawn from {bits} bits, not {due:.0f}"
    )


def _ordered(release: Release, people: People, seed: int) -> tuple[FloatArray, Left]:
    """Return the place of each client's row, (n,), and the release."""
    left = release.leave(people, Tape(seed))
    found = drawn_from(release, people, left)
    if found is None:
        return np.full(len(people), np.nan), left
    before, after = (_matrix(table) for table in (found[0], left.rows))
    ranks = [np.lexsort(rows.T) for rows in (before, after)]
    place = np.empty(len(people))
    place[ranks[0]] = ranks[1]
    return place, left


def _places(release: Release, n: int, seed: int) -> str | None:
    """Look at many orders of few rows: each client may stand anywhere."""
    people = _people(release, n, seed)
    runs = [_ordered(release, people, seed + 10 + i) for i in range(ORDERS)]
    places = np.array([place for place, _ in runs])
    if np.isnan(places).any():
        return "no order of the message's rows is what left"
    rows = np.concatenate([_matrix(left.rows) for _, left in runs])
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
    people = _people(release, n, seed)
    place, left = _ordered(release, people, seed + 10)
    rows = _matrix(left.rows)
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
    a, b = (np.asarray(v, dtype=np.float64) for v in (place, _ranks(values)))
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    z = abs(float(a @ b)) / scale * math.sqrt(len(a)) if scale else 0.0
    return (
        f"the order follows {name} ({z:.0f} standard deviations)" if z > MOST else None
    )


def _ranks(values: FloatArray) -> FloatArray:
    _, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.float64)


def payload(release: Release, seed: int) -> str | None:
    """Compare the numbers that left with the declared law, and clients at every lag."""
    for n in release.sizes if release.ordered else ():
        why = _few(release, n, seed) if n < LARGE else _many(release, n, seed)
        if why:
            return f"{n} clients: {why}"
    return None


def _few(release: Release, n: int, seed: int) -> str | None:
    rng, found = np.random.default_rng([seed, n, 1]), []
    for i in range(min(-(-ROWS // n), release.runs)):
        people = _mixed(release.people(n, rng), rng)
        residuals = _residuals(release, people, seed + 1000 + i, rng)
        if isinstance(residuals, str):
            return residuals
        if residuals is None:
            return None
        found.append(residuals)
    return interior.excess(np.concatenate(found), ALPHA)


def _mixed(people: People, rng: np.random.Generator) -> People:
    """Return these people with labels drawn anew."""
    labels = np.where(rng.random(len(people)) < 0.5, -1.0, 1.0)
    return replace(people, labels=labels)


def _residuals(
    release: Release, people: People, seed: int, rng: np.random.Generator
) -> FloatArray | str | None:
    """Return residuals of one release in the clients' order; words: what is wrong."""
    place, left = _ordered(release, people, seed)
    if np.isnan(place).any():
        return "the rows are not what the message draws"
    mine = {name: v[place.astype(int)] for name, v in left.rows.items()}
    if not release.message.possible(release.task, mine).all():
        return "an output left that the declared law gives for no input"
    known = release.known(people)
    return message_residuals.of(release.task, release.message, known, mine, rng)


def _many(release: Release, n: int, seed: int) -> str | None:
    rng = np.random.default_rng([seed, n, 2])
    people = _mixed(release.people(n, rng), rng)
    found = _residuals(release, people, seed + 999, rng)
    if found is None or isinstance(found, str):
        return found
    return interior.excess(found, ALPHA) or lags.check(found).why
