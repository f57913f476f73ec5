"""Hybrid mechanism: a public coin between piecewise and Duchi et al."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.duchi import Duchi
from curvote.mechanisms.exact import WORDS
from curvote.mechanisms.law import Mixture, atomic_law, product_law
from curvote.mechanisms.piecewise import Piecewise
from curvote.validate import FloatArray

# Below it Duchi et al. alone has the smaller worst variance (Wang et al., eq. 6): the
# logarithm of the root of a cubic.
LEAST_PIECEWISE = 0.6093524930273093


class Hybrid(ScalarMechanism):
    """Draws from ``piecewise`` with probability alpha, else from ``duchi``.

    From Wang et al. (2019, section III-C): alpha = 1 - e^(-epsilon/2) above epsilon
    0.61, where the variance is then the same for every input, else 0. The coin is a
    64-bit word against an integer that no input changes. Each output belongs to one of
    the two, so the loss is the larger of theirs; were +-C ever a point of both grids, a
    mixture of two ratios there would be no larger.
    """

    name = "hybrid"
    unbiased = True

    def __init__(self, *, epsilon: float) -> None:
        super().__init__(epsilon=epsilon)
        self.piecewise, self.duchi = Piecewise(epsilon=epsilon), Duchi(epsilon=epsilon)
        wanted = -math.expm1(-self.epsilon / 2) if epsilon > LEAST_PIECEWISE else 0
        self.coin = min(int(wanted * WORDS), WORDS - 1)
        self.shares = self.coin / WORDS, (WORDS - self.coin) / WORDS

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        first = entropy.words(values.size).reshape(values.shape) < np.uint64(self.coin)
        outputs = np.empty(values.shape)
        outputs[first] = self.piecewise.randomize(values[first], entropy)
        outputs[~first] = self.duchi.randomize(values[~first], entropy)
        return outputs

    def _mix(self, piecewise: FloatArray, duchi: FloatArray) -> FloatArray:
        return np.asarray(self.shares[0] * piecewise + self.shares[1] * duchi)

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each output whether a mechanism in use can give it."""
        extremes = self.duchi.possible_mask(outputs)
        return (
            extremes | self.piecewise.possible_mask(outputs) if self.coin else extremes
        )

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the grid point of each input, at most 2^-21 from it."""
        return self._mix(self.piecewise.mean(x), self.duchi.mean(x))

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the mixture's variance: both parts have the same mean."""
        return self._mix(self.piecewise.variance(x), self.duchi.variance(x))

    def cdf(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return the exact P(output <= at) for each input."""
        return self._mix(self.piecewise.cdf(x, at), self.duchi.cdf(x, at))

    def law(self, x: ArrayLike) -> Mixture:
        """Return one term: atoms of ``duchi``, and ``piecewise`` as the rest."""
        values = np.asarray(x, dtype=np.float64)
        rest, extremes = self.shares

        def inner(inputs: FloatArray, at: FloatArray) -> FloatArray:
            return rest * self.piecewise.cdf(inputs, at)

        two = atomic_law(
            self.duchi.outputs, extremes * self.duchi.probabilities(values)
        )
        return product_law(
            replace(
                two, rest=inner, inputs=values[:, None], low=-math.inf, high=math.inf
            )
        )

    def point_probability(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return P(output = at) for each input."""
        hit = self.duchi.outputs == np.asarray(at)[..., None]
        extremes = np.sum(self.duchi.probabilities(x) * hit, axis=-1)
        return self._mix(self.piecewise.point_probability(x, at), extremes)

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        return np.asarray(np.log(self.point_probability(x, at)))

    def worst_ratio(self) -> Fraction:
        """Return the larger ratio of the two mechanisms in use."""
        extremes = self.duchi.worst_ratio()
        return max(self.piecewise.worst_ratio(), extremes) if self.coin else extremes
