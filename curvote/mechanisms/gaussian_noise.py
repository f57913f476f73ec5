"""Gaussian noise on whole numbers of a stated L2 sensitivity.

The one Gaussian mechanism: a record in [-1, 1]^d (`curvote.mechanisms.gaussian`) and
sums over a table of records are its cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.discrete_gaussian import (
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    DiscreteGaussian,
)
from curvote.validate import FloatArray

Steps = NDArray[np.int64]

# The noise is exact below it. Cutting outputs off at the smaller limit, where every
# whole number is a float, is post-processing.
EXACT_BELOW = 1 << 62
OUTPUT_LIMIT = 1 << 53
# A discrete Gaussian of variance v is a rounding of a continuous one of v - 16.
ROUNDING_VARIANCE = 16.0
# Larger than every relative error of ``delta_bound``: rounded towards privacy.
_GUARD = 1 + 1e-11
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def _mills_ratio(z: float | FloatArray) -> FloatArray:
    """Return (1 - Phi(z)) / phi(z)."""
    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(z / math.sqrt(2)))


def _normal_density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _continuous_delta(middle: float, ratio: float) -> float:
    """Return the delta of continuous Gaussian noise without cancellation.

    That is phi(low) times the fall of Mills' ratio from low to high, middle -+ ratio/2;
    near points by quadrature of its derivative, as their difference would cancel.
    """
    low, high = middle - ratio / 2, middle + ratio / 2
    if low < -1 or ratio > 1:
        return float(special.ndtr(-low)) - _normal_density(low) * float(
            _mills_ratio(high)
        )
    z = middle + ratio / 2 * _NODES
    return (
        _normal_density(low) * ratio / 2 * float(_WEIGHTS @ (1 - z * _mills_ratio(z)))
    )


def loss_deviation(sigma: float, sensitivity: float) -> float:
    """Return the standard deviation of the privacy loss of neighbours.

    It is that of continuous noise of variance sigma^2 - 16, both in whole steps.
    Draw x from that noise, then y from the discrete Gaussian of variance 16 around x:
    y is the discrete Gaussian of variance sigma^2 but for factors 1 +- e^-300 in each
    coordinate, as 16 is far above the smoothing parameter of the integers (Peikert
    2010, theorem 3.1). So ours is post-processing of the continuous noise.
    """
    return sensitivity / math.sqrt(sigma * sigma - ROUNDING_VARIANCE)


def delta_bound(epsilon: float, deviation: float) -> float:
    """Return the least delta at ``epsilon`` >= 0 for Gaussian noise, rounded up.

    The loss has mean deviation^2 / 2 (Balle & Wang 2018, theorem 8).
    """
    return _continuous_delta(epsilon / deviation, deviation) * _GUARD


def _log_excess(bound: float, delta: float) -> float:
    return math.log(max(bound, math.ulp(0.0))) - math.log(delta)


def least_epsilon(deviation: float, delta: float) -> float:
    """Return the least epsilon >= 0 whose ``delta_bound`` is ``delta`` at most."""

    def excess(epsilon: float) -> float:
        return _log_excess(delta_bound(epsilon, deviation), delta)

    from scipy import optimize

    if excess(0.0) <= 0:
        return 0.0
    # There low is 40 and delta below every float.
    end = deviation * (40 + deviation / 2)
    return float(optimize.brentq(excess, 0.0, end, xtol=1e-14, rtol=1e-14))


@lru_cache(maxsize=1024)
def calibrate_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least sigma, in steps, whose ``delta_bound`` is ``delta``."""

    def excess(log_sigma: float) -> float:
        deviation = loss_deviation(math.exp(log_sigma), sensitivity)
        return _log_excess(delta_bound(epsilon, deviation), delta)

    from scipy import optimize

    ends = math.log(SMALLEST_SIGMA) + 1e-9, math.log(LARGEST_SIGMA) - 1e-9
    if excess(ends[0]) <= 0:
        return math.exp(ends[0])
    if excess(ends[1]) > 0:
        raise UserError(
            f"epsilon is {epsilon!r} and delta {delta!r} where one record moves"
            f" {sensitivity:.3g} steps; so little needs more noise than 2^32 steps,"
            " which the exact sampler does not hold."
        )
    root = optimize.brentq(excess, *ends, xtol=1e-12, rtol=1e-14)
    return math.exp(root + 2e-12)


@dataclass(frozen=True)
class GaussianNoise:
    """Discrete Gaussian noise for vectors that one record moves by ``sensitivity``.

    ``sensitivity`` is the largest L2 distance of the vectors of two neighbours, in
    whole steps, above 0; sigma is the least that the exact calculation of Balle & Wang
    (2018) allows at (``epsilon``, ``delta``), rounded upwards and with the grid's part
    added (``loss_deviation``); it is 16 steps at least. ``law`` is the noise on each
    coordinate. 0 < delta < 1.
    """

    sensitivity: float
    epsilon: float
    delta: float
    law: DiscreteGaussian = field(init=False)

    def __post_init__(self) -> None:
        sensitivity = validate.positive(sensitivity=self.sensitivity)
        epsilon, delta = validate.positive(epsilon=self.epsilon), self.delta
        sigma = calibrate_sigma(epsilon, validate.fraction(delta=delta), sensitivity)
        object.__setattr__(self, "law", DiscreteGaussian(0.5 / sigma**2))

    @property
    def sigma(self) -> float:
        """The noise's standard deviation, in steps."""
        return self.law.sigma

    @property
    def rho(self) -> float:
        """The zCDP parameter: sensitivity^2 / (2 sigma^2) (Canonne et al., 2020)."""
        return self.sensitivity**2 * self.law.rate

    @property
    def _deviation(self) -> float:
        return loss_deviation(self.sigma, self.sensitivity)

    def delta_at(self, epsilon: float) -> float:
        """Return the delta at another ``epsilon`` >= 0, rounded towards privacy."""
        if not 0 <= epsilon < math.inf:
            raise UserError(
                f"epsilon is {epsilon!r}; it must be finite and at least 0."
            )
        return min(delta_bound(epsilon, self._deviation), 1.0)

    def worst_log_ratio(self) -> float:
        """Return the least epsilon' with (epsilon', ``delta``), of the law drawn from.

        Nothing holds it to ``epsilon``: too small a sigma shows. A calibrated one stays
        below, as ``calibrate_sigma`` rounds ln sigma up by 2e-12, but for the 1e-14 to
        which the root is found here. The loss itself is unbounded: ``log_ratio``
        exceeds it with small probability.
        """
        return least_epsilon(self._deviation, self.delta)

    def add(self, steps: Steps, entropy: Entropy) -> Steps:
        """Return ``steps`` with independent noise on each, cut at 2^53."""
        noise = self.law.sample(steps.size, entropy).reshape(steps.shape)
        out = steps + np.clip(noise, -EXACT_BELOW, EXACT_BELOW)
        return np.asarray(np.clip(out, -OUTPUT_LIMIT, OUTPUT_LIMIT))

    def reach(self, probability: float) -> int:
        """Return the size that noise exceeds with this probability at most.

        P(|noise| >= k) <= 2 e^(-k^2/(2 sigma^2)) (Canonne et al., corollary 17).
        """
        odds = 2 / validate.fraction(probability=probability)
        return math.ceil(self.sigma * math.sqrt(2 * math.log(odds)))

    def log_ratio(self, first: Steps, second: Steps, at: FloatArray) -> FloatArray:
        """Return ln P(at | first) - ln P(at | second), over the last axis."""
        # |at - other|^2 - |at - one|^2, without the cancellation.
        apart = (first - second) * (2 * at - first - second)
        return np.asarray(apart.sum(axis=-1) * self.law.rate)
