"""Duchi et al.'s mechanisms: two outputs for a value, corners for a record."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from curvote.entropy import Entropy
from curvote.mechanisms import exact
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.finite import FiniteMechanism
from curvote.mechanisms.grid import GRID_BITS, GRID_ONE, grid_index
from curvote.validate import FloatArray


class Duchi(FiniteMechanism):
    """Answers -C or +C with mean x, C = (e^epsilon + 1)/(e^epsilon - 1).

    From Wang et al. (2019, algorithm 1), after Duchi et al. (2018). The value, on the
    grid of step 2^-20 (halves to even), is rounded at random to a sign with that mean,
    exactly, and the sign is kept with probability q = threshold/2^64, as in randomized
    response: so P(+C) is linear in x, the loss is ln(q/(1 - q)), and C = 1/(2q - 1).
    Above epsilon 44 the loss stays at ln(2^64 - 1).
    """

    name = "duchi"
    unbiased = True

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        self.threshold = exact.logistic_threshold(self.epsilon)
        self.largest = WORDS / (2 * self.threshold - WORDS)
        self.outputs = np.array([-self.largest, self.largest])

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(2 * values.size).reshape(2, *values.shape)
        uniform = words[0] >> np.uint64(exact.WORD_BITS - GRID_BITS - 1)
        positive = uniform < (grid_index(values) + GRID_ONE).view(np.uint64)
        keep = words[1] < np.uint64(self.threshold)
        return np.where(positive == keep, self.largest, -self.largest)

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return P(-C) and P(+C), [..., 2], for each input [...]."""
        keep, flip = self.threshold / WORDS, (WORDS - self.threshold) / WORDS
        up = (grid_index(self.clip(x)[0]) + GRID_ONE) / (2 * GRID_ONE)
        sides = up * flip + (1 - up) * keep, up * keep + (1 - up) * flip
        return np.stack(sides, axis=-1)

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio q / (1 - q)."""
        return Fraction(self.threshold, WORDS - self.threshold)
