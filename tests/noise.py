"""What the tests of the mechanisms and of the exact samplers share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

EPSILONS = (0.01, 0.1, 0.5, 1, 2, 5, 10)
ALPHA = 1e-6
SEED = 7


class Replay:
    """Hands out the given words, in order; asking for more is a failure."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, n: int) -> np.ndarray:
        assert n <= len(self.left), "more words were drawn than expected"
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken, dtype=np.uint64)


def exp_oracle(x: Fraction) -> Fraction:
    """Return e^x for 0 <= x <= 3, too small by less than 2^-300, by its series."""
    term = total = Fraction(1)
    for k in range(1, 100):
        term *= x / k
        total += term
    return total
