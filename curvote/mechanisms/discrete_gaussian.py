"""Gaussian mechanism: exact discrete Gaussian noise for records and for sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from curvote.entropy import Entropy, Words
from curvote.errors import InternalError
from curvote.mechanisms import exact
from curvote.mechanisms.exact import MARGIN, MAX_BITS, DiscreteLaplace
from curvote.validate import FloatArray

# Below it the law is no longer nearly the continuous one.
SMALLEST_SIGMA = 16.0
LARGEST_SIGMA = 2.0**MAX_BITS


@dataclass(frozen=True)
class DiscreteGaussian:
    """The law P(k) proportional to exp(-rate k^2) on the integers, exactly.

    Algorithm 3 of Canonne, Kamath & Steinke (2020), its scale rounded to t = 2^bits:
    Y from the discrete Laplace of scale t is kept with probability exp(-E), where
    E = rate Y^2 - |Y|/t + c is nowhere negative: c >= 1/(4 rate t^2). ``rate`` is
    1/(2 sigma^2), an exact binary fraction like every float; sigma is 2^4...2^52.
    At least 0.64 of the candidates are kept.
    """

    rate: float

    def __post_init__(self) -> None:
        if not SMALLEST_SIGMA <= self.sigma <= LARGEST_SIGMA:
            raise InternalError(f"No sampler for a discrete Gaussian of {self.sigma}.")

    @property
    def sigma(self) -> float:
        """The parameter sigma; the standard deviation, but for e^-5000."""
        return math.sqrt(0.5 / self.rate)

    @property
    def bits(self) -> int:
        """The whole number nearest to log2(sigma)."""
        return round(math.log2(self.sigma))

    @property
    def _scaled_rate(self) -> float:
        """``rate t^2``, exact: a power of two changes no digit. About 1/4 to 1."""
        return math.ldexp(self.rate, 2 * self.bits)

    @property
    def _offset(self) -> float:
        """The constant c, the float above 1/(4 rate t^2)."""
        return math.nextafter(0.25 / self._scaled_rate, math.inf)

    @property
    def proposal(self) -> DiscreteLaplace:
        """The discrete Laplace of scale t from which the candidates come."""
        return DiscreteLaplace(1, self.bits)

    def cdf(self, k: ArrayLike) -> FloatArray:
        """Return P(draw <= k), to 2e-8; ``k`` is rounded down to whole numbers.

        The normal law up to k + 1/2, less the next term of the midpoint rule,
        f'(k + 1/2)/24 with its density f: what follows is at most .0018/sigma^4.
        """
        z = np.clip((np.floor(k) + 0.5) / self.sigma, -40, 40)
        slope = -z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return np.asarray(special.ndtr(z) - slope / (24 * self.sigma**2))

    def sample(self, n: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return ``n`` independent draws."""
        # 1.6 > 1 / 0.64, the mean number of candidates for each draw.
        return exact.rejection_sample(
            n, 1.6, lambda some: self._draw_candidates(some, entropy)
        )

    def _draw_candidates(self, candidates: int, entropy: Entropy) -> NDArray[np.int64]:
        y = self.proposal.sample(candidates, entropy)
        return y[self._accept(y, entropy.words(candidates), entropy)]

    def _accept(
        self, y: NDArray[np.int64], words: Words, entropy: Entropy
    ) -> NDArray[np.bool_]:
        """Return exact draws of Bernoulli(exp(-E)) for each candidate.

        The error of E is below 2^-51 times the sum of its terms, which exp(-E) keeps
        below 4; with exp's own 2^-51 that is far inside ``MARGIN``.
        """
        gap = np.exp(-self._exponent(y)) - words * 2.0**-exact.WORD_BITS
        accepted: NDArray[np.bool_] = gap > 0
        for i in np.flatnonzero(np.abs(gap) <= MARGIN):
            exponent = self._exact_exponent(int(y[i]))
            uniform = exact.LazyUniform(int(words[i]), entropy)
            accepted[i] = uniform.below_exp(exponent.numerator, exponent.denominator)
        return accepted

    def _exponent(self, y: NDArray[np.int64]) -> FloatArray:
        z = np.abs(y) * 2.0**-self.bits
        return np.asarray(self._scaled_rate * z * z - z + self._offset)

    def _exact_exponent(self, y: int) -> Fraction:
        """Return E as a fraction, at least 0."""
        z = Fraction(abs(y), 1 << self.bits)
        return Fraction(self._scaled_rate) * z * z - z + Fraction(self._offset)
