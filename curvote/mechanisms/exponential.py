"""Exponential mechanism on a finite grid, calibrated to spend all of epsilon."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.base import FiniteMechanism
from curvote.mechanisms.exact import WORDS

MOST_POINTS = 1024
_SPARE_BITS = 256


class Exponential(FiniteMechanism):
    """Answers a point y of a grid with probability proportional to e^(-r |x - y|).

    The grid has ``size`` points (2 to 1024) from -1 to 1; x is rounded to it (halves to
    even). The score -|x - y| with r = epsilon/2 has its worst ratio, e^epsilon, between
    the two ends, whose sums of weights are equal; McSherry & Talwar's general rate
    (2007; Zheng & Hu, definition 13, whose score has the wrong sign) spends half of it.
    Row x of ``counts`` says how many of 2^64 words give each y: rounded up, and the
    rest is y = x. So the ratios are rounded towards privacy. The output is biased.
    """

    name = "exponential"
    unbiased = False

    def __init__(self, *, epsilon: float, size: int = 101) -> None:
        super().__init__(epsilon=epsilon)
        self.size = validate.at_least(2, size=size)
        if self.size > MOST_POINTS:
            raise UserError(f"size is {size!r}; it must be at most {MOST_POINTS}.")
        points = np.arange(self.size)
        self.outputs = (2 * points - (self.size - 1)) / (self.size - 1)
        # 2^256 e^(-epsilon d/(size - 1)), rounded up, for each distance d.
        numerator, denominator = self.epsilon.as_integer_ratio()
        weights, denominator = [1 << _SPARE_BITS], denominator * (self.size - 1)
        for d in range(1, self.size):
            power = exact.exp_bounds(numerator * d, denominator, _SPARE_BITS)
            weights.append(power[1])
        rows = []
        for i in range(self.size):
            relative = [weights[abs(i - j)] for j in range(self.size)]
            total = sum(relative)
            row = [-(-(weight << exact.WORD_BITS) // total) for weight in relative]
            row[i] += WORDS - sum(row)
            rows.append(row)
        self.counts = np.array(rows, dtype=np.uint64)
        # Each row's running sums, padded to a power of two.
        shape = self.size, 1 << (self.size - 1).bit_length()
        self._bounds = np.full(shape, WORDS - 1, dtype=np.uint64)
        self._bounds[:, : self.size - 1] = np.cumsum(self.counts[:, :-1], axis=1)

    def _grid_rows(self, values: FloatArray) -> NDArray[np.int64]:
        return np.asarray(np.rint((values + 1) / 2 * (self.size - 1)).astype(np.int64))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        words = entropy.words(values.size).reshape(values.shape)
        places = self._grid_rows(values) * (half := self._bounds.shape[1])
        # Bisection: how many of the row's bounds has the word reached?
        while half := half // 2:
            places += half * (self._bounds.take(places + half - 1) <= words)
        places %= self._bounds.shape[1]
        return np.asarray(self.outputs.take(places, mode="clip"))

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the probability of each output, [..., size], for each input [...]."""
        return np.asarray(self.counts[self._grid_rows(self.clip(x)[0])] / float(WORDS))

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of the output, from the channel of the grid points."""
        return np.asarray(super().mean(self.outputs)[self._grid_rows(self.clip(x)[0])])

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of the output, from the channel of the grid points."""
        rows = self._grid_rows(self.clip(x)[0])
        return np.asarray(super().variance(self.outputs)[rows])

    def worst_ratio(self) -> Fraction:
        """Return the largest ratio of two counts in one column."""
        columns = zip(self.counts.max(axis=0), self.counts.min(axis=0), strict=True)
        return max(Fraction(int(most), int(least)) for most, least in columns)
