"""The checks of whole releases: where words come from, what the order says, who sees.

Each compares what left with what the audited message draws from the very words that the
operating system gave. So a release can add nothing to the message and take nothing off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from curvote.audit import interior, lags, message_residuals
from curvote.audit.command_release import CommandRelease
from curvote.audit.leaving import People, Release, drawn_from, matrix, people_of
from curvote.audit.row import Finding
from curvote.audit.row_order import LARGE, order, placed
from curvote.audit.tape import Tape
from curvote.chain.stage import Columns
from curvote.entropy import SeededEntropy
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.validate import FloatArray

ALPHA = 1e-8
# Rows of small tables that are drawn in all.
ROWS = 1500
FILES = 300  # where each is a file of its own
# Draws in which a number must move, and kinds of clients where one releases alone.
MOST_DRAWS = 5000
KINDS = 8
# One draw in ten that is rejected is seen in so many calls with a chance of 95 %.
CALLS = 30
# What a message says that is no noise: who sends it, about what, how many, and the
# question that it answers, of which there may be one.
PUBLIC = {"record", "server", "n", "learner", "question"}
# What messages of one noised bit are made of.
BITS = {"label", "learner", "positive", "none other"}


def every(release: Release, samples: int, seed: int) -> list[Finding]:
    """Return the finding of each check; without ``samples`` only those of one draw."""
    checks: list[Callable[[Any, int], str | None]]
    checks = [
        source,
        words,
        noised,
        forks,
        observables,
        *([order, payload] if samples else []),
    ]
    if isinstance(release, CommandRelease):
        checks = [envelope, again, refusal, *checks]
    return [Finding(check.__name__, check(release, seed)) for check in checks]


def source(release: Release, seed: int) -> str | None:
    """Ask whether all that is random came from the operating system, just now.

    The same words lead to the same bytes, at another time, in another process and
    whatever other generators were seeded with; other words to other bytes.
    """
    for n in release.sizes:
        people = people_of(release, n, seed)
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
        people = people_of(release, n, seed)
        left = release.leave(people, Tape(seed + 2))
        if drawn_from(release, people, left) is None:
            return (
                f"{n} clients: the bytes are not those that the message draws from"
                " the words of the operating system, 64 bits each"
            )
    return _deciding(release, seed) or _thrown_away(release, seed)


def _thrown_away(release: Release, seed: int) -> str | None:
    """Say whether more words are asked for at times: a draw may have been rejected.

    What then leaves is drawn from the last ones, as if there had been no other.
    """
    if not isinstance(release, CommandRelease):
        return None
    rng, n = np.random.default_rng([seed, 3]), release.sizes[0]
    beside = set()
    for at in range(CALLS):
        people = _mixed(release, n, rng)
        left = release.leave(people, Tape(seed + at))
        found = drawn_from(release, people, left)
        if found is None:
            return f"{n} clients: the bytes are not drawn from the system's words"
        beside.add(tuple(map(len, [*found.before, *found.after])))
    return None if len(beside) == 1 else "words are drawn at times, and thrown away"


def _deciding(release: Release, seed: int) -> str | None:
    """Say whether a message of one bit is settled by less than its whole word.

    Chance does not show that: so the word is the one at which the answer changes.
    """
    if not set(release.message.payload.model_fields) < BITS:
        return None
    people = people_of(release, 1, seed)
    threshold = BinaryRR(epsilon=release.task.epsilon).threshold
    for off in (-(1 << 31), -1, 0, 1, 1 << 31):
        left = release.leave(people, Tape(word=threshold + off))
        if drawn_from(release, people, left) is None:
            return f"the answer changes at another word than the threshold ({off:+d})"
    return None


def noised(release: Release, seed: int) -> str | None:
    """Ask whether every number of every message moves with the words.

    One that is settled by record, task or name alone would be drawn from any words
    again: `words` cannot tell. A bit is kept so often by chance once in 1e13 times.
    """
    draws = math.ceil(30 * (1 + math.exp(release.budget.epsilon)))
    summed = release.shuffled and release.message.counted
    if draws > MOST_DRAWS or summed:
        return None
    # A server's table may have columns of its own beside those.
    fields = release.message.payload.model_fields.keys() - PUBLIC
    n = release.sizes[min(1, len(release.sizes) - 1)]
    for at in range(KINDS if n == 1 else 1):
        people = _mixed(release, n, np.random.default_rng([seed, at]))
        entropy = SeededEntropy(seed + at)
        tables = (release.redrawn(people, entropy) for _ in range(draws))
        own = [matrix({k: t[k] for k in fields & t.keys()}) for t in tables]
        still = np.ptp(np.stack(own), axis=0) == 0
        if still.any():
            return (
                f"{still.sum()} of {still.size} numbers are the same in {draws} draws"
            )
    return None


def forks(release: Release, seed: int) -> str | None:
    """Ask whether children of one fork, and their parent, use words of their own."""
    people = people_of(release, release.sizes[0], seed)
    family = release.forked(people, 2)
    if any(drawn_from(release, people, left) is None for left in family):
        return "after a fork the bytes are not drawn from fresh words of the system"
    taken = [b"".join(left.asked) for left in family]
    if len(set(taken)) < len(taken):
        return "a child of a fork was given the words of its parent or its sibling"
    rows = [left.rows for left in family]
    shared = max(_shared(one, other) for one, other in combinations(rows, 2))
    if not shared:
        return None
    return f"processes of one fork share {shared:.0%} of their noise"


def observables(release: Release, seed: int) -> str | None:
    """Ask whether anything but the noised numbers tells two records apart."""
    for name, one, other in release.neighbours():
        seen, seen2 = (release.leave(p, Tape(seed)).facts for p in (one, other))
        for fact in sorted(seen.keys() | seen2):
            if seen.get(fact) != seen2.get(fact):
                values = " and ".join(repr(s.get(fact))[:60] for s in (seen, seen2))
                return f"{name}: {fact} tells it: {values}"
    return None


def envelope(release: CommandRelease, seed: int) -> str | None:
    """Ask whether all that leaves is the declared form, in its place, as invited."""
    for n in release.sizes:
        left = release.leave(people_of(release, n, seed), Tape(seed))
        if left.facts["form"]:
            return f"{n} clients: {left.facts['form'][0]}"
        if not left.rows:
            return f"{n} clients: not a file for each invitation: {left.facts}"
    return None


def again(release: CommandRelease, seed: int) -> str | None:
    """Ask whether a second call, of another record too, leaves every byte as it was.

    And whether one that asks for a new release draws its own noise.
    """
    for name, one, other in release.neighbours()[:2]:
        first, *more = release.calls(
            [one, one, other], [Tape(seed + i) for i in range(3)]
        )
        if any(left.files != first.files for left in more):
            return f"{name}: a second call changes what lies in the outbox"
        if more[0].facts["exit code"] or more[1].facts["exit code"]:
            return f"{name}: a second call is refused"
    name, one, _ = release.neighbours()[0]
    _, anew = release.calls([one, one], [Tape(seed), Tape(seed)], anew=True, share=2)
    if anew.facts["exit code"] or drawn_from(release, one, anew) is None:
        return "a new release does not draw anew from the system's words"
    return None


def refusal(release: CommandRelease, seed: int) -> str | None:
    """Ask whether a refused call leaves nothing behind and says the same to all."""
    for why, how in release.refusals.items():
        for name, *pair in release.neighbours():
            seen = [release.calls([p], [Tape(seed)], **how)[0] for p in pair]
            if any(left.files for left in seen):
                return f"{why}: something lies in the outbox"
            if not all(left.facts["exit code"] for left in seen):
                return f"{why}: it is not refused"
            if seen[0].asked != seen[1].asked or seen[0].facts != seen[1].facts:
                return f"{why}, {name}: the refusal tells it"
    return None


def payload(release: Release, seed: int) -> str | None:
    """Compare the numbers that left with the declared law, and clients at every lag."""
    for n in release.sizes if release.ordered else ():
        why = _few(release, n, seed) if n < LARGE else _many(release, n, seed)
        if why:
            return f"{n} clients: {why}"
    return None


def _few(release: Release, n: int, seed: int) -> str | None:
    rng, found = np.random.default_rng([seed, n, 1]), []
    rows = ROWS if release.shuffled else FILES
    for i in range(min(-(-rows // n), release.runs)):
        people = _mixed(release, n, rng)
        residuals = _residuals(release, people, seed + 1000 + i, rng)
        if isinstance(residuals, str):
            return residuals
        if residuals is None:
            return None
        found.append(residuals)
    return interior.excess(np.concatenate(found), ALPHA)


def _mixed(release: Release, n: int, rng: np.random.Generator) -> People:
    """Return people with labels of all classes in random order."""
    people, k = release.people(n, rng), len(release.task.classes)
    if not release.shuffled and len(people) > 1:
        return people
    return replace(people, labels=np.floor(k * rng.random(n)))


def _residuals(
    release: Release, people: People, seed: int, rng: np.random.Generator
) -> FloatArray | str | None:
    """Return residuals of one release in the clients' order; words: what is wrong."""
    place, left = placed(release, people, seed)
    if np.isnan(place).any():
        return "the rows are not what the message draws"
    mine = {name: v[place.astype(int)] for name, v in left.rows.items()}
    if not release.message.possible(release.task, mine).all():
        return "an output left that the declared law gives for no input"
    known = release.known(people)
    return message_residuals.of(release.task, release.message, known, mine, rng)


def _many(release: Release, n: int, seed: int) -> str | None:
    rng = np.random.default_rng([seed, n, 2])
    people = _mixed(release, n, rng)
    found = _residuals(release, people, seed + 999, rng)
    if found is None or isinstance(found, str):
        return found
    return interior.excess(found, ALPHA) or lags.check(found).why
