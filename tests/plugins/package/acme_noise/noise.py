"""A mechanism of three outputs with a law of its own, and one that breaks it."""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from curvote.base.entropy import Entropy
from curvote.base.validate import FloatArray
from curvote.mechanisms import base, exact
from curvote.mechanisms.exact import WORDS


class Thirds(base.FiniteMechanism):
    """Answers -1, 0 or 1: the nearest to the value with odds e^epsilon to 1 to 1.

    A value in [-1, 1] is rounded to the nearest of the three, halves to even. That one
    is told with probability threshold/2^64, either other with half of the rest.
    """

    name = "thirds"
    unbiased = False

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        # 1 "inside" to 2 "outside": each other value has (1 - q)/2.
        self.threshold = exact.logistic_threshold(self.epsilon, 1, 2)
        self.threshold -= self.threshold % 2  # so that the rest has two halves
        self.outputs = np.array([-1.0, 0.0, 1.0])

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(values.size).reshape(values.shape)
        half = (WORDS - self.threshold) // 2
        near = np.rint(values).astype(np.int64)
        turn = np.where(words < np.uint64(self.threshold), 0, 1)
        turn = np.where(words >= np.uint64(self.threshold + half), 2, turn)
        return self.outputs[(near + 1 + turn) % 3]

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the chance of -1, 0 and 1, [..., 3], for each input [...]."""
        near = np.rint(self.clip(x)[0])[..., None] == self.outputs
        other = (WORDS - self.threshold) / 2 / WORDS
        return np.where(near, self.threshold / WORDS, other)

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio q / ((1 - q)/2)."""
        return Fraction(2 * self.threshold, WORDS - self.threshold)


class LeakyThirds(Thirds):
    """Claims the same law, and tells a value near the end as it is."""

    name = "leaky_thirds"

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        told = super()._draw(values, entropy)
        return np.where(values > 0.9, 1.0, told)
