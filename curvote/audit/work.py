"""Check that the number of words drawn does not tell the input.

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
COUNTED_CLIENTS = 8
MOST = 7.0  # standard deviations of a difference of two means


class CountingEntropy(SeededEntropy):
    """A seeded stream that counts requested words."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.word_count = 0

    def words(self, n: int) -> Words:
        """Return the next ``n`` words, and count them."""
        self.word_count += n
        return super().words(n)


def check_word_counts(subject: Subject, seed: int) -> Finding:
    """Compare the words drawn for pairs of inputs, from the same streams."""
    inputs = subject.inputs(np.random.default_rng(seed))
    counts = [_word_counts(subject, x, seed) for x in inputs]
    for (i, first), (j, second) in combinations(enumerate(counts), 2):
        if _counts_differ(first, second, subject.rejects):
            means = f"{first.mean():.4g} and {second.mean():.4g}"
            return Finding("work", f"inputs {i} and {j} draw {means} words on average")
    return Finding("work")


def _word_counts(subject: Subject, x: Any, seed: int) -> FloatArray:
    counts = []
    for run in range(RUNS if subject.batched else SLOW_RUNS):
        entropy = CountingEntropy(seed + run)
        subject.draw(x, COUNTED_CLIENTS, entropy)
        counts.append(entropy.word_count)
    return np.array(counts, dtype=np.float64)


def _counts_differ(first: FloatArray, second: FloatArray, rejects: bool) -> bool:
    """Return whether counts differ: at all, or on average."""
    gap = first - second
    if not gap.any() or not rejects:
        return bool(gap.any())
    spread = gap.std(ddof=1) / np.sqrt(len(gap))
    return bool(abs(gap.mean()) > MOST * spread)
