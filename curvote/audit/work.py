"""Whether the number of words that are drawn tells the input.

Words take time, and who watches a process counts them. The same words must be asked
for whatever the input is; where candidates are rejected, as often on average.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from curvote.audit.row import Finding
from curvote.audit.subject import Subject
from curvote.entropy import SeededEntropy, Words
from curvote.validate import FloatArray

RUNS = 60
SLOW_RUNS = 8  # where each client's draw is a call of its own
CLIENTS = 8
MOST = 7.0  # standard deviations of a difference of two means


class Counting(SeededEntropy):
    """A seeded stream that counts what was asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.drawn = 0

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        self.drawn += n
        return super().words(n)


def check(subject: Subject, seed: int) -> Finding:
    """Compare the words drawn for pairs of inputs, from the same streams."""
    inputs = subject.inputs(np.random.default_rng(seed))
    counts = [_counts(subject, x, seed) for x in inputs]
    for (i, one), (j, other) in combinations(enumerate(counts), 2):
        if _apart(one, other, subject.rejects):
            means = f"{one.mean():.4g} and {other.mean():.4g}"
            return Finding("work", f"inputs {i} and {j} draw {means} words on average")
    return Finding("work")


def _counts(subject: Subject, x: Any, seed: int) -> FloatArray:
    found = []
    for run in range(RUNS if subject.batched else SLOW_RUNS):
        entropy = Counting(seed + run)
        subject.draw(x, CLIENTS, entropy)
        found.append(entropy.drawn)
    return np.array(found, dtype=np.float64)


def _apart(one: FloatArray, other: FloatArray, rejects: bool) -> bool:
    """Say whether the counts differ: at all, or on average where that is due."""
    gap = one - other
    if not gap.any() or not rejects:
        return bool(gap.any())
    spread = gap.std(ddof=1) / np.sqrt(len(gap))
    return bool(abs(gap.mean()) > MOST * spread)
