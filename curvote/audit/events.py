"""Events that tell two inputs apart: intervals of scores of an output.

A score is one number for each output. Candidates are chosen on a first part of the
draws and judged on the rest, so that the choice costs no confidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from curvote.audit.bounds import least_epsilon
from curvote.audit.subject import Subject
from curvote.validate import FloatArray

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
    first, other = map(subject.shown, inputs)
    if first is not None and other is not None:
        yield "projection on x - x2", rows @ (first - other)
        yield "values equal to x", (rows == first).sum(axis=1).astype(np.float64)


def _frequent_values(draws: FloatArray) -> FloatArray:
    """Return the most frequent values, those that occur more than once."""
    values, counts = np.unique(draws, return_counts=True)
    common = np.argsort(counts, kind="stable")[::-1][:MOST_VALUES]
    return values[common[counts[common] > 1]]


def candidate_intervals(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return candidate intervals [m, 2]: half-lines, bins and single values."""
    pooled = np.concatenate([first, second])
    cuts = np.unique(np.quantile(pooled, QUANTILES, method="higher"))
    single = np.unique(
        np.concatenate([_frequent_values(first), _frequent_values(second)])
    )
    infinite = np.full(cuts.size, np.inf)
    below, above = np.nextafter(cuts[1:], -np.inf), np.nextafter(cuts, np.inf)
    parts = [
        (-infinite, cuts),
        (above, infinite),
        (cuts[:-1], below),
        (single, single),
    ]
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
    half = len(first_scores) // 3
    within = candidate_intervals(first_scores[:half], other[:half])
    chosen = [count_within(draws[:half], within) for draws in (first_scores, other)]
    for first, second in ((0, 1), (1, 0)):
        promised = least_epsilon(chosen[first], chosen[second], half, delta, alpha)
        top = int(np.argmax(promised))
        held_out = (
            (first_scores, other)[first][half:],
            (first_scores, other)[second][half:],
        )
        hits, hits2 = (int(count_within(draws, within[[top]])[0]) for draws in held_out)
        low, high = within[top]
        ends = float(low), float(high)
        yield Event(name, *ends, hits, hits2, len(held_out[0]), float(promised[top]))
