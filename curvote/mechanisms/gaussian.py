"""The analytic Gaussian mechanism on records in [-1, 1]^d, exact on a dyadic grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.base import VectorMechanism
from curvote.mechanisms.discrete_gaussian import (
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    DiscreteGaussian,
)
from curvote.mechanisms.grid import GRID_BITS, ONE, STEP, grid_index
from curvote.validate import FloatArray

# The noise is exact below it. Cutting outputs off at the smaller limit, where every
# whole number is a float, is post-processing.
EXACT_BELOW = 1 << 62
LIMIT = 1 << 53
# A discrete Gaussian of variance v is a rounding of a continuous one of v - 16.
ROUNDING_VARIANCE = 16.0
# Larger than every relative error of ``delta_bound``: rounded towards privacy.
_GUARD = 1 + 1e-11
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def sensitivity(d: int) -> float:
    """Return the diameter of [-1, 1]^d in grid steps: 2^21 sqrt(d)."""
    return math.ldexp(math.sqrt(d), GRID_BITS + 1)


def _mills(z: float | FloatArray) -> FloatArray:
    """Return (1 - Phi(z)) / phi(z)."""
    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(z / math.sqrt(2)))


def _density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _continuous_delta(middle: float, ratio: float) -> float:
    """Return Phi(ratio/2 - middle) - e^(middle ratio) Phi(-ratio/2 - middle).

    That is phi(low) times the fall of Mills' ratio from low to high, middle -+ ratio/2;
    near points by quadrature of its derivative, as their difference would cancel.
    """
    low, high = middle - ratio / 2, middle + ratio / 2
    if low < -1 or ratio > 1:
        return float(special.ndtr(-low)) - _density(low) * float(_mills(high))
    z = middle + ratio / 2 * _NODES
    return _density(low) * ratio / 2 * float(_WEIGHTS @ (1 - z * _mills(z)))


def loss_deviation(sigma: float, d: int) -> float:
    """Return the standard deviation of the privacy loss at the diameter.

    It is that of continuous noise of variance sigma^2 - 16, ``sigma`` in grid steps.
    Draw x from that noise, then y from the discrete Gaussian of variance 16 around x:
    y is the discrete Gaussian of variance sigma^2 but for factors 1 +- e^-300 in each
    coordinate, as 16 is far above the smoothing parameter of the integers (Peikert
    2010, theorem 3.1). So ours is post-processing of the continuous noise.
    """
    return sensitivity(d) / math.sqrt(sigma * sigma - ROUNDING_VARIANCE)


def delta_bound(epsilon: float, deviation: float) -> float:
    """Return the least delta at ``epsilon`` >= 0 for Gaussian noise, rounded up.

    The loss has mean deviation^2 / 2 (Balle & Wang 2018, theorem 8).
    """
    return _continuous_delta(epsilon / deviation, deviation) * _GUARD


def _excess(bound: float, delta: float) -> float:
    return math.log(max(bound, math.ulp(0.0))) - math.log(delta)


def _calibrate(epsilon: float, delta: float, d: int) -> float:
    """Return the least sigma, in grid steps, whose ``delta_bound`` is ``delta``."""

    def excess(log_sigma: float) -> float:
        deviation = loss_deviation(math.exp(log_sigma), d)
        return _excess(delta_bound(epsilon, deviation), delta)

    ends = math.log(SMALLEST_SIGMA) + 1e-9, math.log(LARGEST_SIGMA) - 1e-9
    if excess(ends[0]) <= 0:
        return math.exp(ends[0])
    if excess(ends[1]) > 0:
        raise UserError(
            f"epsilon is {epsilon!r} and delta {delta!r} for {d} coordinates; so little"
            " needs more noise than 2^32, which the exact sampler does not hold."
        )
    root = optimize.brentq(excess, *ends, xtol=1e-12, rtol=1e-14)
    return math.exp(root + 2e-12)


class Gaussian(VectorMechanism):
    """Adds Gaussian noise to a record in [-1, 1]^d: (epsilon, delta)-private.

    Each coordinate is rounded to the grid of step 2^-20 (halves to even) before the
    noise, an exact discrete Gaussian on the same grid (Canonne, Kamath & Steinke
    2020). Sigma is the least for the box's diameter 2 sqrt(d) by the exact calculation
    of Balle & Wang (2018), for every epsilon, rounded upwards and with the grid's part
    added (``loss_deviation``); it is 16 steps at least.
    """

    name = "gaussian"
    unbiased = True

    def __init__(self, *, epsilon: float, d: int, delta: float) -> None:
        super().__init__(epsilon=epsilon, d=d)
        self.delta = validate.fraction(delta=delta)
        sigma = _calibrate(self.epsilon, self.delta, self.d)
        self.noise = DiscreteGaussian(0.5 / sigma**2)

    @property
    def sigma(self) -> float:
        """The noise's standard deviation in each coordinate."""
        return self.noise.sigma * STEP

    @property
    def _deviation(self) -> float:
        return loss_deviation(self.noise.sigma, self.d)

    @property
    def rho(self) -> float:
        """The zCDP parameter: diameter^2 / (2 sigma^2) (Canonne et al., theorem 4)."""
        return sensitivity(self.d) ** 2 * self.noise.rate

    def delta_at(self, epsilon: float) -> float:
        """Return the delta at another ``epsilon`` >= 0, rounded towards privacy."""
        if not 0 <= epsilon < math.inf:
            raise UserError(
                f"epsilon is {epsilon!r}; it must be finite and at least 0."
            )
        return min(delta_bound(epsilon, self._deviation), 1.0)

    def worst_log_ratio(self) -> float:
        """Return the least epsilon' with (epsilon', ``delta``), at most epsilon.

        The loss itself is unbounded: ``log_ratio`` exceeds it with small probability.
        """
        if self.delta_at(0.0) <= self.delta:
            return 0.0
        # Here low is 40 and delta below every float.
        end = min(self.epsilon, self._deviation * (40 + self._deviation / 2))
        found = optimize.brentq(
            lambda epsilon: _excess(self.delta_at(epsilon), self.delta),
            *(0.0, end),
            xtol=1e-14,
            rtol=1e-14,
        )
        return min(float(found), self.epsilon)

    def _steps(self, x: ArrayLike) -> NDArray[np.int64]:
        clipped, _ = self.clip(x)
        return grid_index(clipped)

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noise = self.noise.sample(values.size, entropy).reshape(values.shape)
        out = self._steps(values) + np.clip(noise, -EXACT_BELOW, EXACT_BELOW)
        return np.asarray(np.clip(out, -LIMIT, LIMIT) * STEP)

    def possible(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each record whether all are grid points that the cut leaves."""
        steps = np.asarray(outputs, dtype=np.float64) / STEP
        on_grid = (steps == np.rint(steps)) & (np.abs(steps) <= LIMIT)
        return np.asarray(on_grid.all(axis=-1))

    def tail(self, probability: float) -> float:
        """Return 1 and sigma sqrt(2 ln(2/probability)), in whole steps.

        P(|noise| >= k) <= 2 e^(-k^2/(2 sigma^2)) (Canonne et al., corollary 17).
        """
        odds = 2 / validate.fraction(probability=probability)
        beyond = ONE + math.ceil(self.noise.sigma * math.sqrt(2 * math.log(odds)))
        return min(beyond, LIMIT) * STEP

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the grid point of each coordinate, at most 2^-21 from it, (n, d)."""
        return np.asarray(self._steps(x) * STEP)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return sigma^2 for each coordinate, (n, d)."""
        return np.full(np.shape(x), self.sigma**2)

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2), (n,), for grid points ``at``."""
        steps = np.asarray(at) / STEP
        first, second = self._steps(x), self._steps(x2)
        # |at - x2|^2 - |at - x|^2, without the cancellation.
        apart = (first - second) * (2 * steps - first - second)
        return np.asarray(apart.sum(axis=-1) * self.noise.rate)
