"""Checks of losses: the declared law, exactly, and draws, with proven bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from curvote.base.validate import FloatArray
from curvote.checks.subject import Loss, Subject
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.exact import exp_bounds


def proportion_bounds(
    hits: ArrayLike, n: int, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on a probability from ``hits`` of ``n``.

    Each is wrong with probability ``alpha`` at most (Clopper & Pearson 1934).
    """
    k = np.asarray(hits, dtype=np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, alpha), 0.0)
    missed = np.maximum(n - k, 1)
    # The upper bound of k hits is 1 minus the lower bound of the n - k misses.
    high = np.where(k < n, 1 - betaincinv(missed, k + 1, alpha), 1.0)
    return low, high


def least_epsilon(
    hits: ArrayLike, hits2: ArrayLike, n: int, delta: float, alpha: float
) -> FloatArray:
    """Return the epsilon that an event proves for a pair of inputs.

    From ``hits`` of ``n`` draws for x and ``hits2`` of ``n`` for x2, by bounds that are
    wrong with probability ``alpha`` each; -inf where nothing is proved.
    """
    low, _ = proportion_bounds(hits, n, alpha)
    _, high = proportion_bounds(hits2, n, alpha)
    gained = np.maximum(low - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(gained) - np.log(high))


def bernstein(values: FloatArray, most: ArrayLike, alpha: float) -> FloatArray:
    """Return the deviation bound of column means of bounded values.

    Wrong with probability ``alpha`` for each column (Maurer & Pontil 2009, theorem 4,
    both sides).
    """
    n = len(values)
    log = np.log(4 / alpha)
    spread = np.sqrt(2 * values.var(axis=0, ddof=1) * log / n)
    return np.asarray(spread + 7 * np.asarray(most) * log / (3 * (n - 1)))


def exceeds_exp(ratio: Fraction, epsilon: float) -> bool:
    """Return exactly whether ``ratio`` > e^``epsilon``.

    e^epsilon is irrational, so enough bits always settle it.
    """
    parts = epsilon.as_integer_ratio()
    bits = 256 + ratio.numerator.bit_length() + ratio.denominator.bit_length()
    while True:
        low, high = exp_bounds(*parts, bits)
        if ratio.numerator * high <= ratio.denominator << bits:
            return False
        if ratio.numerator * low > ratio.denominator << bits:
            return True
        bits *= 2


def check_declared_loss(subject: Subject, loss: Loss) -> str | None:
    """Check that the integers of the law stay within the budget.

    A fraction is compared with e^epsilon by rational bounds: one threshold in 2^64
    that is too large by 1 is caught.
    """
    claimed = subject.budget.epsilon
    if loss.ratio is not None and exceeds_exp(loss.ratio, claimed):
        excess = loss.log - claimed
        by = "less than 1e-9" if excess < 1e-9 else f"{excess:.3g}"
        return f"the worst ratio exceeds e^{claimed:g} by {by} in log"
    if Fraction(loss.log) > Fraction(claimed):
        return f"the worst loss is {loss.log:.6g}, not {claimed:g}"
    return None


# Columns of an output that are scored one by one.
MOST_COLUMNS = 8
# Thresholds for each score, and single values that are tried as events.
QUANTILES = np.concatenate([[1e-3, 1e-2], np.linspace(0, 1, 34)[1:-1], [0.99, 0.999]])
MOST_VALUES = 12
LARGE = 1e100
FINEST = 1200.0  # finer than 2^-1074, the smallest double


@dataclass(frozen=True)
class Event:
    """The event that a score lies in [``low``, ``high``], for one pair.

    ``hits`` and ``hits2`` of ``n`` held-out draws of x and of x2 have it; ``promise``
    is the epsilon that the draws of the choice promised.
    """

    score: str
    low: float
    high: float
    hits: int
    hits2: int
    n: int
    promise: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.score} = {self.low:g}"
        return f"{self.low:g} <= {self.score} <= {self.high:g}"


def binary_precision(values: FloatArray) -> FloatArray:
    """Return the least k with value = integer / 2^k, 0 for coarser values.

    Doubles near 0 are finer than those near 1, so floating-point noise gives away
    where it was added (Mironov 2012).
    """
    mantissa, exponent = np.frexp(values)
    mantissas = np.ldexp(mantissa, 53).astype(np.int64)
    # The lowest set bit of the 53-bit integer mantissa, as a power of two.
    lowest = np.frexp((mantissas & -mantissas).astype(np.float64))[1] - 1
    return np.where(values == 0, -FINEST, 53.0 - exponent - lowest)


def event_scores(
    subject: Subject, inputs: tuple[object, object], outputs: object, loss: FloatArray
) -> Iterator[tuple[str, FloatArray]]:
    """Yield named scores of outputs that tell two ``inputs`` apart.

    Only the first, the declared ``loss`` of each, trusts the declared law.
    """
    yield "declared loss", np.nan_to_num(loss)
    # NaN and infinity become numbers, so that they are events like any other.
    rows = np.clip(np.nan_to_num(subject.view(outputs)), -LARGE, LARGE)
    # Equal records and no others get equal numbers: single records become events.
    weights = np.random.default_rng(0).normal(size=rows.shape[1])
    yield "record", rows @ weights
    yield "norm", np.linalg.norm(rows, axis=1)
    for j in range(min(rows.shape[1], MOST_COLUMNS)):
        yield f"value {j}", rows[:, j]
        if (rows[:, j] != np.rint(rows[:, j])).any():
            yield f"fineness of value {j}", binary_precision(rows[:, j])
    first, other = map(subject.input_row, inputs)
    if first is not None and other is not None:
        yield "projection on x - x2", rows @ (first - other)
        yield "values equal to x", (rows == first).sum(axis=1).astype(np.float64)


def _frequent_values(draws: FloatArray) -> FloatArray:
    values, counts = np.unique(draws, return_counts=True)
    common = np.argsort(counts, kind="stable")[::-1][:MOST_VALUES]
    return values[common[counts[common] > 1]]


def candidate_intervals(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return candidate intervals [m, 2]: half-lines, bins and single values."""
    pooled = np.concatenate([first, second])
    cuts = np.unique(np.quantile(pooled, QUANTILES, method="higher"))
    common = [_frequent_values(draws) for draws in (first, second)]
    single, infinite = np.unique(np.concatenate(common)), np.full(cuts.size, np.inf)
    below, above = np.nextafter(cuts[1:], -np.inf), np.nextafter(cuts, np.inf)
    parts = (-infinite, cuts), (above, infinite), (cuts[:-1], below), (single, single)
    return np.concatenate([np.stack(part, axis=1) for part in parts])


def count_within(draws: FloatArray, within: FloatArray) -> FloatArray:
    """Return how many ``draws`` lie in each closed interval [m, 2]."""
    ordered = np.sort(draws)
    upto = np.searchsorted(ordered, within[:, 1], side="right")
    return np.asarray(upto - np.searchsorted(ordered, within[:, 0], side="left"))


def best_events(
    name: str, first_scores: FloatArray, other: FloatArray, delta: float, alpha: float
) -> Iterator[Event]:
    """Yield the most telling event of a score in each direction.

    Chosen on the first third of the draws and counted on the rest.
    """
    third = len(first_scores) // 3
    within = candidate_intervals(first_scores[:third], other[:third])
    chosen = [count_within(draws[:third], within) for draws in (first_scores, other)]
    held_out = first_scores[third:], other[third:]
    for turn in (1, -1):
        first, second = chosen[::turn]
        promised = least_epsilon(first, second, third, delta, alpha)
        top, held_draws = int(np.argmax(promised)), held_out[::turn]
        hits = [int(count_within(draws, within[[top]])[0]) for draws in held_draws]
        low, high, promise = *map(float, within[top]), float(promised[top])
        yield Event(name, low, high, hits[0], hits[1], len(held_draws[0]), promise)


# How many events are judged on the held-out draws; each shares the error rate.
LARGEST_PAIRS = 8
# How sure the choice is of what an event promises: rare events must not be passed over.
CHOICE_ALPHA = 1e-4
SLACK = 1e-9  # sums of logarithms in float64 are off by some ulp
OutputPair = tuple[Any, Any]


@dataclass(frozen=True)
class Pair:
    """Two inputs, their draws, and the declared loss of x over x2."""

    x: Any
    x2: Any
    outputs: Any
    outputs2: Any
    loss: FloatArray
    loss2: FloatArray

    @classmethod
    def of(cls, subject: Subject, first: OutputPair, second: OutputPair) -> Pair:
        """Return the pair of two inputs with their outputs."""
        inputs, outputs = (first[0], second[0]), (first[1], second[1])
        losses = (subject.log_ratio(*inputs, some) for some in outputs)
        return cls(*inputs, *outputs, *losses)

    @property
    def sides(self) -> tuple[tuple[Any, Any, FloatArray], ...]:
        """Each input with its outputs and their losses."""
        other = self.x2, self.outputs2, self.loss2
        return (self.x, self.outputs, self.loss), other


def lower_bound(
    subject: Subject, pairs: Sequence[Pair], alpha: float
) -> tuple[float, Event]:
    """Return an epsilon that the draws prove, and the event that proves it.

    Too large with probability ``alpha`` at most: Clopper-Pearson bounds, Bonferroni
    over the ``JUDGED`` events and their two sides.
    """
    event_alpha, delta = alpha / (2 * LARGEST_PAIRS), subject.budget.delta
    events: list[Event] = []
    for pair in pairs:  # the most telling event of each score, in both directions
        first, second = (
            dict(event_scores(subject, (pair.x, pair.x2), outputs, loss))
            for _, outputs, loss in pair.sides
        )
        for name in filter(second.__contains__, first):
            scores = first[name], second[name]
            events += best_events(name, *scores, delta, CHOICE_ALPHA)
    events.sort(key=lambda event: -event.promise)

    def proven_epsilon(event: Event) -> float:
        bound = least_epsilon(event.hits, event.hits2, event.n, delta, event_alpha)
        return float(bound)

    top = max(events[:LARGEST_PAIRS], key=proven_epsilon)
    return max(proven_epsilon(top), 0.0), top


def check_lower_bound(subject: Subject, bound: float, event: Event) -> str | None:
    """Check that the draws prove no larger loss than the claim."""
    claimed = subject.budget.epsilon
    if bound <= claimed + SLACK:
        return None
    proof = f"({event}: {event.hits} and {event.hits2} of {event.n} draws)"
    return f"epsilon is at least {bound:.3f}, not {claimed:g} {proof}"


def check_support(subject: Subject, pairs: Sequence[Pair]) -> str | None:
    """Check that each output is possible and loses at most epsilon."""
    for pair in pairs:
        for _, outputs, losses in pair.sides:
            wrong = np.flatnonzero(~np.asarray(subject.possible(outputs), dtype=bool))
            if wrong.size:
                row = subject.view(outputs)[wrong[0]]
                return (
                    f"{wrong.size} outputs that the declared law gives for no input,"
                    f" the first is {np.array2string(row[:4], threshold=4)}"
                )
            loss = np.abs(losses)
            # NaN is 0/0: an output that neither input can give.
            over = ~(loss <= subject.budget.epsilon + SLACK)
            if not subject.budget.delta and over.any():
                return f"an output was drawn whose declared loss is {loss[over][0]:.3f}"
    return None


CUTS = (0.05, 0.25, 0.5, 0.75, 0.95)


def check_law(subject: Subject, pairs: Sequence[Pair], alpha: float) -> str | None:
    """Compare draws with the declared law; wrong with probability ``alpha`` at most."""
    faults = _law_faults(subject, pairs, alpha / (3 * len(pairs)))
    return next(faults, None)


def _law_faults(subject: Subject, pairs: Sequence[Pair], alpha: float) -> Iterator[str]:
    compared = set[int]()
    for pair in pairs:
        # An input of several pairs has the same draws in all of them.
        fresh = [side for side in pair.sides if id(side[1]) not in compared]
        compared |= {id(outputs) for _, outputs, _ in fresh}
        for x, outputs, _ in fresh:
            if why := subject.law_gap(x, outputs, alpha):
                yield why
        # P(A | x) = E[e^L 1_A | x2] for events A = {L <= t}, L the declared loss.
        # Thresholds t come from the first third.
        loss, loss2 = pair.loss, pair.loss2
        third = len(loss) // 3
        cuts = np.unique(np.quantile(loss2[:third], CUTS, method="higher"))
        cuts = cuts[np.isfinite(cuts) & (cuts < 30)]
        if not cuts.size:
            continue
        hits = loss[third:, None] <= cuts
        weights = np.exp(np.minimum(loss2[third:, None], cuts))
        weights *= loss2[third:, None] <= cuts
        event_alpha = alpha / (2 * cuts.size)
        margin = bernstein(weights, np.exp(cuts), event_alpha)
        low, high = proportion_bounds(hits.sum(axis=0), len(hits), event_alpha / 2)
        expected = weights.mean(axis=0)
        gap = np.maximum(low - expected, expected - high) - margin
        worst = int(np.argmax(gap))
        if gap[worst] > 0:
            yield (
                f"P(declared loss <= {cuts[worst]:.3g}) differs by over"
                f" {gap[worst]:.2g} from what the declared loss says"
            )


def share_gap(
    draws: FloatArray, outputs: FloatArray, declared: FloatArray, alpha: float
) -> str | None:
    """Return where an output's share departs from its probability, if at all.

    ``outputs`` [m] are the outputs, increasing, ``declared`` [m] their probabilities.
    """
    place = np.minimum(np.searchsorted(outputs, draws), len(outputs) - 1)
    if (outputs[place] != draws).any():
        return "an output was drawn that the channel does not name"
    hits = np.bincount(place, minlength=len(outputs))
    low, high = proportion_bounds(hits, len(draws), alpha / (2 * len(outputs)))
    slack = 1e-12  # declared probabilities are rounded to float64
    wrong = np.flatnonzero((declared < low - slack) | (declared > high + slack))
    if not wrong.size:
        return None
    i = wrong[0]
    share = hits[i] / len(draws)
    return f"output {outputs[i]:g} has share {share:.4g}, declared {declared[i]:.4g}"


def distribution_gap(
    mechanism: ScalarMechanism, x: FloatArray, draws: FloatArray, alpha: float
) -> str | None:
    """Return how far the distribution function is off, if it is.

    Dvoretzky-Kiefer-Wolfowitz with Massart's constant (1990), jumps included.
    """
    at, counts = np.unique(draws, return_counts=True)
    reached = np.cumsum(counts) / draws.size
    below = mechanism.cdf(x, np.nextafter(at, -np.inf))
    gap = np.abs(reached - mechanism.cdf(x, at)).max()
    gap = max(gap, np.abs(reached - counts / draws.size - below).max())
    if gap <= math.sqrt(math.log(2 / alpha) / (2 * draws.size)):
        return None
    return f"for input {float(x):.3g} the distribution function is off by {gap:.3g}"
