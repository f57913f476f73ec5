"""Gaussian mechanism: exact discrete Gaussian noise for records and for sums."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy, Words
from curvote.base.errors import InternalError, UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import base, exact
from curvote.mechanisms.exact import MARGIN

# Below it the law is no longer nearly the continuous one.
SMALLEST_SIGMA = 16.0
LARGEST_SIGMA = 2.0**exact.MAX_BITS


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
    def proposal(self) -> exact.DiscreteLaplace:
        """The discrete Laplace of scale t from which the candidates come."""
        return exact.DiscreteLaplace(1, self.bits)

    def cdf(self, k: ArrayLike) -> FloatArray:
        """Return P(draw <= k), to 2e-8; ``k`` is rounded down to whole numbers.

        The normal law up to k + 1/2, less the next term of the midpoint rule,
        f'(k + 1/2)/24 with its density f: what follows is at most .0018/sigma^4.
        """
        from scipy import special

        z = np.clip((np.floor(k) + 0.5) / self.sigma, -40, 40)
        slope = -z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return np.asarray(special.ndtr(z) - slope / (24 * self.sigma**2))

    def sample(self, n: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return ``n`` independent draws."""
        # 1.6 > 1 / 0.64, the mean number of candidates for each draw.
        draw = partial(self._draw_candidates, entropy=entropy)
        return exact.rejection_sample(n, 1.6, draw)

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
    from scipy import special

    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(z / math.sqrt(2)))


def _continuous_delta(middle: float, ratio: float) -> float:
    """Return the delta of continuous Gaussian noise without cancellation.

    That is phi(low) times the fall of Mills' ratio from low to high, middle -+ ratio/2;
    near points by quadrature of its derivative, as their difference would cancel.
    """
    from scipy import special

    low, high = middle - ratio / 2, middle + ratio / 2
    density = math.exp(-low * low / 2) / math.sqrt(2 * math.pi)
    if low < -1 or ratio > 1:
        return float(special.ndtr(-low)) - density * float(_mills_ratio(high))
    z = middle + ratio / 2 * _NODES
    return density * ratio / 2 * float(_WEIGHTS @ (1 - z * _mills_ratio(z)))


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


def box_diameter(d: int) -> float:
    """Return the diameter of [-1, 1]^d in grid steps: 2^21 sqrt(d)."""
    return math.ldexp(math.sqrt(d), exact.GRID_BITS + 1)


class Gaussian(base.VectorMechanism):
    """Adds Gaussian noise to a record in [-1, 1]^d: (epsilon, delta)-private.

    Each coordinate is rounded to the grid of step 2^-20 (halves to even) before the
    noise, an exact discrete Gaussian on the same grid (Canonne, Kamath & Steinke
    2020), for the box's diameter 2 sqrt(d) (`GaussianNoise`).
    """

    name = "gaussian"
    unbiased = True

    def __init__(self, *, epsilon: float, d: int, delta: float) -> None:
        super().__init__(epsilon=epsilon, d=d)
        self.delta = validate.fraction(delta=delta)
        self.noise = GaussianNoise(box_diameter(self.d), self.epsilon, self.delta)

    @property
    def sigma(self) -> float:
        """The noise's standard deviation in each coordinate."""
        return self.noise.sigma * exact.GRID_STEP

    @property
    def rho(self) -> float:
        """The zCDP parameter: diameter^2 / (2 sigma^2) (Canonne et al., theorem 4)."""
        return self.noise.rho

    def delta_at(self, epsilon: float) -> float:
        """Return the delta at another ``epsilon`` >= 0, rounded towards privacy."""
        return self.noise.delta_at(epsilon)

    def worst_log_ratio(self) -> float:
        """Return the least epsilon' with (epsilon', ``delta``), of the law drawn from.

        The loss itself is unbounded: ``log_ratio`` exceeds it with small probability.
        """
        return self.noise.worst_log_ratio()

    def _to_steps(self, x: ArrayLike) -> NDArray[np.int64]:
        clipped, _ = self.clip(x)
        return exact.grid_index(clipped)

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        steps = self.noise.add(self._to_steps(values), entropy)
        return np.asarray(steps * exact.GRID_STEP)

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each record whether all are grid points within the cut."""
        steps = np.asarray(outputs, dtype=np.float64) / exact.GRID_STEP
        on_grid = (steps == np.rint(steps)) & (np.abs(steps) <= OUTPUT_LIMIT)
        return np.asarray(on_grid.all(axis=-1))

    def tail_bound(self, probability: float) -> float:
        """Return 1 and the reach of the noise, at most 2^33."""
        steps = exact.GRID_ONE + self.noise.reach(probability)
        return min(steps, OUTPUT_LIMIT) * exact.GRID_STEP

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the grid point of each coordinate, at most 2^-21 from it, (n, d)."""
        return np.asarray(self._to_steps(x) * exact.GRID_STEP)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return sigma^2 for each coordinate, (n, d)."""
        return np.full(np.shape(x), self.sigma**2)

    def law(self, x: ArrayLike) -> base.Mixture:
        """Return one term: the noise's law around each coordinate's grid point."""
        columns = self._to_steps(x).T[..., None].astype(np.float64)

        def cdf(steps: FloatArray, at: FloatArray) -> FloatArray:
            return self.noise.law.cdf(np.floor(at / exact.GRID_STEP) - steps)

        return base.product_law(
            *(base.continuous_law(column, cdf) for column in columns)
        )

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2), (n,), for grid points ``at``."""
        pair = self._to_steps(x), self._to_steps(x2)
        return self.noise.log_ratio(*pair, np.asarray(at) / exact.GRID_STEP)
