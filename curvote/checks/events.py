"""Events that tell two inputs apart, and the epsilon that draws of them prove.

The engine of `curvote audit` and of `curvote.falsify`. Events are chosen on the first
third of the draws and judged on the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

FloatArray = NDArray[np.float64]
# Numbers by what they say of outputs, (n,) each.
Scores = Mapping[str, FloatArray]


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


# Columns of an output that are scored one by one.
MOST_COLUMNS = 8
# Thresholds for each score, and single values that are tried as events.
QUANTILES = np.concatenate([[1e-3, 1e-2], np.linspace(0, 1, 34)[1:-1], [0.99, 0.999]])
MOST_VALUES = 12
# What stands for infinity, for NaN, and where an output has no such number.
LARGE, NAN, MISSING = 1e100, 2e100, 4e100
FINEST = 1200.0  # finer than 2^-1074, the smallest double
# How many events are judged on the held-out draws; each shares the error rate.
MOST_EVENTS = 8
# How sure the choice is of what an event promises: rare events must not be passed over.
CHOICE_ALPHA = 1e-4
SLACK = 1e-9  # sums of logarithms in float64 are off by some ulp


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


def finite_rows(rows: FloatArray) -> FloatArray:
    """Return the rows with numbers of their own for NaN and infinities."""
    if np.abs(rows).max(initial=0.0) <= LARGE:
        return rows
    clipped = np.where(rows == MISSING, rows, np.clip(rows, -LARGE, LARGE))
    return np.where(np.isnan(rows), NAN, clipped)


def number_scores(
    rows: FloatArray, names: Sequence[str] | None = None
) -> Iterator[tuple[str, FloatArray]]:
    """Yield named scores of outputs of finite numbers, ``rows`` (n, k)."""
    columns = range(rows.shape[1])
    for j in columns[:MOST_COLUMNS]:
        name = names[j] if names else f"value {j}"
        yield name, rows[:, j]
        if (rows[:, j] != np.rint(rows[:, j])).any():
            yield f"fineness of {name}", binary_precision(rows[:, j])
    # Equal records and no others get equal numbers: single records become events. They
    # are added one by one, so that one row alone gets the same number.
    weights = np.random.default_rng(0).normal(size=len(columns))
    record, square = np.zeros(len(rows)), np.zeros(len(rows))
    for j in columns:
        record += weights[j] * rows[:, j]
        square += rows[:, j] * rows[:, j]
    yield "record", record
    yield "norm", np.sqrt(square)


@dataclass(frozen=True)
class Event:
    """The event that a score lies in [``low``, ``high``], for one pair.

    ``hits`` of ``n`` draws of x and ``hits2`` of ``n`` of x2 have it, where x is the
    second of the two inputs if ``turned``; ``pair`` is their place. ``promise`` is the
    epsilon that the draws of the choice promised.
    """

    score: str
    low: float
    high: float
    hits: int
    hits2: int
    n: int
    promise: float
    turned: bool = False
    pair: int = 0

    def __str__(self) -> str:
        if self.low == self.high:
            special = {LARGE: "is infinite", NAN: "is NaN", MISSING: "is missing"}
            word = special.get(self.low, f"= {self.low:g}")
            return f"{self.score} {word}"
        if np.isinf(self.low):
            return f"{self.score} <= {self.high:.6g}"
        if np.isinf(self.high):
            return f"{self.score} >= {self.low:.6g}"
        return f"{self.low:.6g} <= {self.score} <= {self.high:.6g}"

    def holds(self, score: FloatArray) -> NDArray[np.bool_]:
        """Return which of the scores lie in the interval."""
        return (score >= self.low) & (score <= self.high)

    def counted(self, first: Scores, second: Scores, start: int) -> Event:
        """Return the event with its hits among the draws from ``start`` on."""
        sides = (second, first) if self.turned else (first, second)
        scores = [side[self.score][start:] for side in sides]
        hits, hits2 = (int(self.holds(score).sum()) for score in scores)
        return replace(self, hits=hits, hits2=hits2, n=len(scores[0]))

    def proven(self, delta: float, alpha: float) -> float:
        """Return the epsilon that it proves; too large with probability ``alpha``."""
        bound = least_epsilon(self.hits, self.hits2, self.n, delta, alpha / 2)
        return float(bound)


def _frequent_values(draws: FloatArray) -> FloatArray:
    values, counts = np.unique(draws, return_counts=True)
    common = np.argsort(counts, kind="stable")[::-1][:MOST_VALUES]
    return values[common[counts[common] > 1]]


def candidate_intervals(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return candidate intervals [m, 2]: single values, half-lines and bins."""
    pooled = np.concatenate([first, second])
    cuts = np.unique(np.quantile(pooled, QUANTILES, method="higher"))
    common = [_frequent_values(draws) for draws in (first, second)]
    single, infinite = np.unique(np.concatenate(common)), np.full(cuts.size, np.inf)
    below, above = np.nextafter(cuts[1:], -np.inf), np.nextafter(cuts, np.inf)
    parts = (single, single), (-infinite, cuts), (above, infinite), (cuts[:-1], below)
    return np.concatenate([np.stack(part, axis=1) for part in parts])


def count_within(draws: FloatArray, within: FloatArray) -> FloatArray:
    """Return how many ``draws`` lie in each closed interval [m, 2]."""
    ordered = np.sort(draws)
    upto = np.searchsorted(ordered, within[:, 1], side="right")
    return np.asarray(upto - np.searchsorted(ordered, within[:, 0], side="left"))


def propose_events(
    first: Scores, second: Scores, delta: float, pair: int = 0
) -> Iterator[Event]:
    """Yield the most telling event of each score in each direction."""
    for name in filter(second.__contains__, first):
        sides = first[name], second[name]
        within, n = candidate_intervals(*sides), len(sides[0])
        counts = [count_within(draws, within) for draws in sides]
        for turned in (False, True):
            hits, hits2 = counts[::-1] if turned else counts
            promised = least_epsilon(hits, hits2, n, delta, CHOICE_ALPHA)
            top = int(np.argmax(promised))
            low, high, promise = *map(float, within[top]), float(promised[top])
            some = int(hits[top]), int(hits2[top])
            yield Event(name, low, high, *some, n, promise, turned, pair)


def strongest_event(
    pairs: Iterable[tuple[Scores, Scores]], delta: float, alpha: float
) -> tuple[float, Event]:
    """Return an epsilon that the draws of pairs prove, and the event that proves it.

    Too large with probability ``alpha`` at most: Clopper-Pearson bounds, Bonferroni
    over the ``MOST_EVENTS`` events that promise most, and their two sides.
    """
    events: list[Event] = []
    for place, sides in enumerate(pairs):
        third = len(next(iter(sides[0].values()))) // 3
        chosen = [{name: s[:third] for name, s in side.items()} for side in sides]
        proposals = propose_events(chosen[0], chosen[1], delta, place)
        events += [event.counted(*sides, third) for event in proposals]
    events.sort(key=lambda event: -event.promise)
    each_alpha = alpha / MOST_EVENTS
    proofs = [(e.proven(delta, each_alpha), e) for e in events[:MOST_EVENTS]]
    bound, top = max(proofs, key=lambda proof: proof[0])
    return max(bound, 0.0), top
