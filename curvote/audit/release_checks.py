"""Checks of whole releases: row order, random words, forks, envelopes, refusals."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from curvote.audit.command_release import CommandRelease
from curvote.audit.message_subject import residuals_of_message
from curvote.audit.release import (
    People,
    Release,
    ReleaseOutcome,
    row_keys,
    table_matrix,
)
from curvote.base.entropy import SeededEntropy
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks.residuals import check_lags, uniformity_gap
from curvote.checks.word_checks import Tape
from curvote.mechanisms.randomized_response import BinaryRR

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
            people = release.seeded_people(n, seed)
            redrawn = release.redraw_table(people, release.leave(people, Tape(seed)))
            bits = 8 * len(b"".join(redrawn.after)) if redrawn else 0
            due = math.lgamma(n + 1) / math.log(2)
            if bits < due:
                drawn_from = f"the order is drawn from {bits} bits"
                return f"{n} clients: {drawn_from}, not {due:.0f}"
            if why := looked(release, n, seed):
                return f"{n} clients: {why}"
    return None


def place_rows(
    release: Release, people: People, seed: int
) -> tuple[FloatArray, ReleaseOutcome]:
    """Return the place of each client's row, (n,), and the release."""
    outcome = release.leave(people, Tape(seed))
    redrawn = release.redraw_table(people, outcome)
    if redrawn is None:
        return np.full(len(people), np.nan), outcome
    if not release.shuffled:
        rows = len(next(iter(outcome.rows.values())))
        return np.arange(rows, dtype=np.float64), outcome
    before, after = (table_matrix(table) for table in (redrawn.table, outcome.rows))
    # Equal rows may be anybody's of those who sent them.
    ties = np.random.default_rng(seed).permutation(len(people))
    ranks = [np.lexsort((ties, row_keys(before))), np.argsort(row_keys(after))]
    place = np.empty(len(people))
    place[ranks[0]] = ranks[1]
    return place, outcome


def _check_positions(release: Release, n: int, seed: int) -> str | None:
    """Check over many orders that each client may stand anywhere."""
    people = release.seeded_people(n, seed)
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
    truths = {"the list": np.arange(len(people)), "the label": people.labels}
    z = release.client_data(people).z.T
    truths |= {f"coordinate {i}": column for i, column in enumerate(z)}
    for name, of in truths.items():
        if why := _has_trend(places.ravel(), np.tile(of, len(places)), name):
            return why
    return None


def _check_sequence(release: Release, n: int, seed: int) -> str | None:
    """Check one long order for trends and runs."""
    people = release.seeded_people(n, seed)
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
    ranks = np.unique(values, return_inverse=True)[1]
    with np.errstate(invalid="ignore"):  # NaN where one of them is constant
        z = abs(np.corrcoef(place, ranks)[0, 1]) * math.sqrt(len(place))
    if not z > MOST:
        return None
    return f"the order follows {name} ({z:.0f} standard deviations)"


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


def named_checks(
    release: Release, samples: int
) -> dict[str, Callable[[Any, int], str | None]]:
    """Return the checks of a release by the names that the audit prints.

    Without ``samples`` only those of one draw.
    """
    checks: dict[str, Callable[[Any, int], str | None]] = {}
    if isinstance(release, CommandRelease):
        checks |= {"envelope": check_envelope, "again": check_repetition}
        checks |= {"refusal": check_refusal}
    checks |= {"source": check_source, "words": check_words, "noised": check_noised}
    checks |= {"forks": check_forks, "observables": check_observables}
    if samples:
        checks |= {"order": check_order, "payload": check_payload}
    return checks


def check_source(release: Release, seed: int) -> str | None:
    """Check that all randomness came from the operating system.

    The same words lead to the same bytes, at another time, in another process and
    whatever other generators were seeded with; other words to other bytes.
    """
    for n in release.sizes:
        people = release.seeded_people(n, seed)
        first, again, other = (
            release.leave(people, Tape(words), world=world)
            for words, world in ((seed, 0), (seed, 1), (seed + 1, 0))
        )
        if first.noised_bytes != again.noised_bytes or first.answers != again.answers:
            return f"{n} clients: the same system words lead to other bytes"
        if not b"".join(first.answers):
            return f"{n} clients: nothing was asked of the operating system"
        share = _shared_share(first.rows, other.rows)
        if share:
            return f"{n} clients: {share:.0%} of the numbers ignore the system's words"
    return None


def _shared_share(first: Columns, second: Columns) -> float:
    """Return the largest share of equal numbers in a column."""
    continuous = [name for name, v in first.items() if v.dtype.kind == "f" and v.size]
    shares = [float(np.isin(first[name], second[name]).mean()) for name in continuous]
    return max((share for share in shares if share > 0.05), default=0.0)


def check_words(release: Release, seed: int) -> str | None:
    """Check that each number follows from fresh 64-bit words."""
    for n in release.sizes:
        people = release.seeded_people(n, seed)
        outcome = release.leave(people, Tape(seed + 2))
        if release.redraw_table(people, outcome) is None:
            return (
                f"{n} clients: the bytes are not those that the message draws from"
                " the words of the operating system, 64 bits each"
            )
    # A bit that is settled by less than its whole word is not shown by chance: so the
    # word is the one at which the answer changes.
    if set(release.message.payload.model_fields) < BITS:
        people = release.seeded_people(1, seed)
        threshold = BinaryRR(epsilon=release.task.epsilon).threshold
        for off in (-(1 << 31), -1, 0, 1, 1 << 31):
            outcome = release.leave(people, Tape(word=threshold + off))
            if release.redraw_table(people, outcome) is None:
                return (
                    f"the answer changes at another word than the threshold ({off:+d})"
                )
    if not isinstance(release, CommandRelease):
        return None
    # Where the number of requested words varies, what leaves is drawn from the last
    # ones, as if there had been no other.
    rng, n = np.random.default_rng([seed, 3]), release.sizes[0]
    beside = set()
    for at in range(CALLS):
        people = _mixed_people(release, n, rng)
        outcome = release.leave(people, Tape(seed + at))
        redrawn = release.redraw_table(people, outcome)
        if redrawn is None:
            return f"{n} clients: the bytes are not drawn from the system's words"
        beside.add(tuple(map(len, [*redrawn.before, *redrawn.after])))
    return None if len(beside) == 1 else "words are drawn at times, and thrown away"


def check_noised(release: Release, seed: int) -> str | None:
    """Check that every number of every message moves with the words.

    One that is settled by record, task or name alone would be drawn from any words
    again: `check_words` cannot tell. A bit is kept so often by chance once in 1e13
    times.
    """
    draws = math.ceil(30 * (1 + math.exp(release.budget.epsilon)))
    summed = release.shuffled and release.message.count_columns
    if draws > MOST_DRAWS or summed:
        return None
    # A server's table may have columns of its own beside those.
    fields = release.message.payload.model_fields.keys() - PUBLIC
    n = release.sizes[min(1, len(release.sizes) - 1)]
    for at in range(KINDS if n == 1 else 1):
        people = _mixed_people(release, n, np.random.default_rng([seed, at]))
        entropy = SeededEntropy(seed + at)
        tables = (release.redraw(people, entropy) for _ in range(draws))
        matrices = [table_matrix({k: t[k] for k in fields & t.keys()}) for t in tables]
        still = np.ptp(np.stack(matrices), axis=0) == 0
        if still.any():
            same = f"{still.sum()} of {still.size} numbers"
            return f"{same} are the same in {draws} draws"
    return None


def check_forks(release: Release, seed: int) -> str | None:
    """Check that children of a fork and their parent use separate words."""
    people = release.seeded_people(release.sizes[0], seed)
    family = release.leave_forked(people, 2)
    if any(release.redraw_table(people, outcome) is None for outcome in family):
        return "after a fork the bytes are not drawn from fresh words of the system"
    answers = [b"".join(outcome.answers) for outcome in family]
    if len(set(answers)) < len(answers):
        return "a child of a fork was given the words of its parent or its sibling"
    pairs = combinations([outcome.rows for outcome in family], 2)
    shared = max(_shared_share(first, second) for first, second in pairs)
    if not shared:
        return None
    return f"processes of one fork share {shared:.0%} of their noise"


def check_observables(release: Release, seed: int) -> str | None:
    """Check that only the noised numbers tell two records apart."""
    for name, before, after in release.neighbours():
        visible, seen2 = (release.leave(p, Tape(seed)).facts for p in (before, after))
        for fact in sorted(visible.keys() | seen2):
            if visible.get(fact) != seen2.get(fact):
                values = " and ".join(repr(s.get(fact))[:60] for s in (visible, seen2))
                return f"{name}: {fact} tells it: {values}"
    return None


def check_envelope(release: CommandRelease, seed: int) -> str | None:
    """Check that the outcome has the declared form, place and name."""
    for n in release.sizes:
        outcome = release.leave(release.seeded_people(n, seed), Tape(seed))
        if outcome.facts["form"]:
            return f"{n} clients: {outcome.facts['form'][0]}"
        if not outcome.rows:
            return f"{n} clients: not a file for each invitation: {outcome.facts}"
    return None


def check_repetition(release: CommandRelease, seed: int) -> str | None:
    """Check that a second call leaves every byte unchanged.

    And whether one that asks for a new release draws its own noise.
    """
    for name, before, other in release.neighbours()[:2]:
        tapes = [Tape(seed + i) for i in range(3)]
        first, *more = release.calls([before, before, other], tapes)
        if any(outcome.files != first.files for outcome in more):
            return f"{name}: a second call changes what lies in the outbox"
        if more[0].facts["exit code"] or more[1].facts["exit code"]:
            return f"{name}: a second call is refused"
    name, before, _ = release.neighbours()[0]
    tapes = [Tape(seed), Tape(seed)]
    _, anew = release.calls([before, before], tapes, anew=True, share=2)
    if anew.facts["exit code"] or release.redraw_table(before, anew) is None:
        return "a new release does not draw anew from the system's words"
    return None


def check_refusal(release: CommandRelease, seed: int) -> str | None:
    """Check that a refused call leaves no file and no varying text."""
    for why, how in release.refusals.items():
        for name, *pair in release.neighbours():
            a, b = (release.calls([p], [Tape(seed)], **how)[0] for p in pair)
            if a.files or b.files:
                return f"{why}: something lies in the outbox"
            if not (a.facts["exit code"] and b.facts["exit code"]):
                return f"{why}: it is not refused"
            if a.answers != b.answers or a.facts != b.facts:
                return f"{why}, {name}: the refusal tells it"
    return None


def check_payload(release: Release, seed: int) -> str | None:
    """Compare the numbers that left with the declared law, and clients at every lag."""
    for n in release.sizes if release.ordered else ():
        is_large = n >= LARGE
        rng = np.random.default_rng([seed, n, 2 if is_large else 1])
        runs = min(-(-(ROWS if release.shuffled else FILES) // n), release.runs)
        parts: list[FloatArray] = []
        for i in range(1 if is_large else runs):
            people = _mixed_people(release, n, rng)
            first = seed + (999 if is_large else 1000)
            residuals = _release_residuals(release, people, first + i, rng)
            if isinstance(residuals, str):
                return f"{n} clients: {residuals}"
            if residuals is None:
                break
            parts.append(residuals)
        else:
            every = np.concatenate(parts)
            why = uniformity_gap(every, ALPHA)
            if is_large:
                why = why or check_lags(every)
            if why:
                return f"{n} clients: {why}"
    return None


def _mixed_people(release: Release, n: int, rng: np.random.Generator) -> People:
    people, k = release.people(n, rng), len(release.task.classes)
    if not release.shuffled and len(people) > 1:
        return people
    return replace(people, labels=np.floor(k * rng.random(n)))


def _release_residuals(
    release: Release, people: People, seed: int, rng: np.random.Generator
) -> FloatArray | str | None:
    """Return a release's residuals in the clients' order, or a fault."""
    place, outcome = place_rows(release, people, seed)
    if np.isnan(place).any():
        return "the rows are not what the message draws"
    columns = {name: v[place.astype(int)] for name, v in outcome.rows.items()}
    if not release.message.possible_mask(release.task, columns).all():
        return "an output left that the declared law gives for no input"
    data = release.client_data(people)
    return residuals_of_message(release.task, release.message, data, columns, rng)
