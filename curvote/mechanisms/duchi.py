"""Duchi et al.'s mechanisms: two outputs for a value, corners for a record."""

import math
from fractions import Fraction
from itertools import product as every
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.entropy import Entropy
from curvote.base.validate import FloatArray
from curvote.mechanisms import base, exact
from curvote.mechanisms.exact import GRID_BITS, GRID_ONE, WORDS, grid_index


class Duchi(base.FiniteMechanism):
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


class DuchiVector(base.VectorMechanism):
    """Answers a corner of [-B, B]^d with mean x (Wang et al. 2019, algorithm 3).

    After Duchi et al. (2018). Each coordinate, on the grid of step 2^-20 (halves to
    even), is rounded at random to a sign with that mean, exactly. With probability
    q = threshold/2^64 the answer is uniform over the ``inside`` corners that agree with
    those signs in more than half of the coordinates, otherwise over the ``outside``
    ones. **Ties**, in which exactly half agrees (even d), are outside. The papers put
    them on both sides, so that ties are 1 + e^epsilon times as likely as corners
    beyond: a loss of ln(1 + e^epsilon). Here it is epsilon, and B is smaller too:
    1/B = C(d-1, floor(d/2)) (q/inside - (1 - q)/outside), their B for odd d.
    """

    name = "duchi_vector"
    unbiased = True

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(epsilon=epsilon, d=d)
        ties = 0 if self.d % 2 else math.comb(self.d, self.d // 2)
        self.inside = ((1 << self.d) - ties) // 2
        self.outside = (1 << self.d) - self.inside
        counts = self.inside, self.outside
        self.threshold = exact.logistic_threshold(self.epsilon, *counts)
        near = Fraction(self.threshold, WORDS * self.inside)
        far = Fraction(WORDS - self.threshold, WORDS * self.outside)
        self.largest = float(1 / (math.comb(self.d - 1, self.d // 2) * (near - far)))

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        near = entropy.words(len(values)) < np.uint64(self.threshold)
        # Uniform rows of which more than half is true iff ``near``.
        agrees, waiting = np.empty((near.size, self.d), np.bool_), np.arange(near.size)
        width = -(-self.d // exact.WORD_BITS)
        while waiting.size:
            rows = entropy.words(waiting.size * width).reshape(waiting.size, width)
            bits = np.unpackbits(rows.view(np.uint8), axis=1, count=self.d)
            candidates = bits.view(np.bool_)
            accepted = (2 * candidates.sum(axis=1) > self.d) == near[waiting]
            agrees[waiting[accepted]] = candidates[accepted]
            waiting = waiting[~accepted]
        # Exact random signs, with the values as means.
        words = entropy.words(values.size).reshape(values.shape)
        uniform = words >> np.uint64(exact.WORD_BITS - GRID_BITS - 1)
        positive = uniform < (grid_index(values) + GRID_ONE).view(np.uint64)
        return np.where(positive == agrees, self.largest, -self.largest)

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each record whether it is a corner of [-B, B]^d."""
        return np.asarray((np.abs(outputs) == self.largest).all(axis=-1))

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the grid point of each coordinate, at most 2^-21 from it, (n, d)."""
        clipped, _ = self.clip(x)
        return grid_index(clipped) / GRID_ONE

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return B^2 - x^2 for each coordinate, (n, d)."""
        return np.asarray(self.largest**2 - self.mean(x) ** 2)

    def law(self, x: ArrayLike) -> base.Mixture | None:
        """Return a term for each corner, in the order of the signs' binary numbers."""
        if self.d >= base.MAX_TERMS.bit_length():
            return None
        records = self.clip(x)[0]
        far = (WORDS - self.threshold) / (WORDS * self.outside)
        ones = np.ones((len(records), 1))
        sides = [base.atomic_law([sign * self.largest], ones) for sign in (-1, 1)]
        corners = list(every((0, 1), repeat=self.d))
        signs = [2.0 * np.array([corner]) - 1 for corner in corners]
        chances = [np.exp(self._log_likelihood(records, at)) for at in signs]
        terms = [tuple(sides[up] for up in corner) for corner in corners]
        return base.Mixture(far * np.stack(chances, axis=1), terms)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the log-likelihood of a corner relative to one outside."""
        agrees = (1 + np.sign(at) * self.mean(x)) / 2
        counts = np.zeros((len(agrees), self.d + 1))
        counts[:, 0] = 1
        for column in agrees.T[..., None]:
            more = column * counts[:, :-1]
            counts *= 1 - column
            counts[:, 1:] += more
        inside = 2 * np.arange(self.d + 1) > self.d
        weights = np.where(inside, float(self.worst_ratio()), 1.0)
        return np.asarray(np.log(counts @ weights))

    def worst_ratio(self) -> Fraction:
        """Return the exact likelihood ratio of a corner inside to one outside."""
        far = (WORDS - self.threshold) * self.inside
        return Fraction(self.threshold * self.outside, far)
