"""ALIBI label mechanism: Laplace noise on one-hot labels, and its soft labels.

A soft label is s_c = w_c / S, S the sum of all K weights, which are independent given
the label. As 1/S^2 is the integral of t exp(-t S) over t > 0, moments are integrals of
products, one factor a class. Over x = log t the trapezoidal rule is exact to rounding:
with steps of 1/5 its error is about exp(-5 pi^2) of the integral.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms import exact
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.exact import MAX_BITS, Bits, DiscreteLaplace, Labels
from curvote.mechanisms.labels import fill_in_blocks

_STEP = 0.2
# Beyond so many orders of e on either side of 1/S nothing is left of an integral.
_BEFORE, _AFTER = 21.0, 4.0
# The sum of the weights is below e^-80 with probability e^-40 at most.
_SMALLEST = 80.0
# A variance below so much of the second moment is lost in its rounding.
_ROUNDING = 2.0**-50


class SoftMoments(NamedTuple):
    """Moments of the soft labels of one class c and another class j.

    ``gap`` is E(s_c - s_j), ``label_variance`` is Var(s_c), ``other_variance`` is
    Var(s_j), and ``pair`` is Var(s_c - s_j).
    """

    gap: float
    label_variance: float
    other_variance: float
    pair: float


@lru_cache(maxsize=128)
def soft_label_moments(rate: float, one_steps: int, n_classes: int) -> SoftMoments:
    """Return the moments of soft labels under Laplace noise.

    Small ones without cancellation: to K = 1000 ``gap`` is right to 13 digits for every
    epsilon, variances to 11 up to epsilon 20, to 3 at 60. From 70 on, where they are
    below 2^-50, a bound of that size stands for them.
    """
    epsilon = 2 * rate * one_steps
    first = -_BEFORE - math.log(n_classes)
    count = math.ceil((min(epsilon, _SMALLEST) + _AFTER - first) / _STEP)
    t = np.asarray(np.exp(first + _STEP * np.arange(count)))
    near_square, far_square, crossed = _moment_integrals(rate, one_steps, n_classes, t)
    # E(s_c - s_j) = K/2 E(s_c - s_j)^2 over uniform labels: soft labels are posteriors.
    gap = min(near_square + (n_classes - 2) / 2 * far_square, 1.0)
    pair = _variance_of(near_square, gap)
    # Of s_c - 1/K = the mean over all j of s_c - s_j.
    share = (n_classes - 1) / n_classes
    square = share * (near_square + (n_classes - 2) * crossed) / n_classes
    label_variance = _variance_of(square, share * gap)
    # Soft labels sum to 1, so Cov(s_c, s_j) = -Var(s_c)/(K - 1).
    other_variance = pair - label_variance * (n_classes + 1) / (n_classes - 1)
    other_variance = max(other_variance, _ROUNDING * (gap / n_classes) ** 2)
    return SoftMoments(gap, label_variance, other_variance, pair)


def _moment_integrals(
    rate: float, one_steps: int, n_classes: int, t: FloatArray
) -> tuple[float, float, float]:
    """Return the three second moments of differences of soft labels.

    For two classes there is no third: what is returned for it is finite.
    """
    k = np.arange(one_steps + 1)
    less = -np.expm1(-2 * rate * np.abs(k[:, None] - k))
    lower = np.tril(_soft_weights(rate, one_steps)[:, None] * less)
    differ, other = np.asarray(lower - lower.T), clipped_law(rate, one_steps)
    damped = np.exp(-t[:, None] * _soft_weights(rate, one_steps))
    p, q = other[::-1] * damped, other * damped
    q0 = q.sum(axis=1)
    two, three = q0 ** (n_classes - 2), q0 ** max(n_classes - 3, 0)
    products = (
        ((p @ differ**2) * q).sum(axis=1) * two,
        ((q @ differ**2) * q).sum(axis=1) * p.sum(axis=1) * three,
        (p * (q @ differ.T) ** 2).sum(axis=1) * three,
    )
    near, far, crossed = (float(t**2 @ values * _STEP) for values in products)
    return near, far, crossed


def _variance_of(second: float, mean: float) -> float:
    """Return the variance for a second moment and a mean."""
    return max(second - mean**2, _ROUNDING * second)


def clipped_law(rate: float, one_steps: int) -> FloatArray:
    """Return the law of another class's number cut to 0..1.

    The label's own number is the mirror image.
    """
    tail = 1 / (1 + math.exp(-rate))
    inner = math.tanh(rate / 2) * np.exp(-rate * np.arange(1, one_steps))
    return np.concatenate([[tail], inner, [tail * math.exp(-rate * one_steps)]])


def _soft_weights(rate: float, one_steps: int) -> FloatArray:
    return np.asarray(np.exp(-2 * rate * np.arange(one_steps, -1, -1)))


# The 1 of a one-hot label, counted in steps.
ONE_HOT_STEPS = 1 << 6
# Two labels differ by 1 in two coordinates: the sensitivity in steps is 2 ONE = 2^7.
_RANGE_BITS = 7
# Noise beyond so many of its scales, once in 2^64 numbers, is cut off.
_MAX_SCALES = 64 * math.log(2)


def _steps_below_max(rows: NDArray[Any]) -> NDArray[Any]:
    """Return how many steps each number is below its row's largest."""
    inside = np.clip(rows, 0, ONE_HOT_STEPS)
    return np.asarray(inside.max(axis=1, keepdims=True) - inside)


class Alibi(LabelMechanism):
    """Adds Laplace noise of scale 2/epsilon to each number of the one-hot label.

    Malek Esmaeili et al. (2021), algorithm 3; Zhao et al. (2025), (29). Outputs are
    whole steps of 2^-6, (n, n_classes), of the smallest signed type that holds
    [-``limit``, ``limit``]. The noise is exact on the same grid: P(k) is proportional
    to exp(-|k| s/t) with t a power of two and s = floor(epsilon t / 2^7), so the loss
    2^7 s/t is at most epsilon. Cutting off at ``limit`` is post-processing: it loses
    nothing more and changes no ratio of likelihoods. ``decode`` is the soft label made
    unbiased. Above 2^30 epsilon is taken as 2^30, where the noise is practically 0.
    """

    name = "alibi"
    unbiased = True

    def __init__(self, *, epsilon: float, n_classes: int) -> None:
        super().__init__(epsilon=epsilon, n_classes=n_classes)
        target = min(self.epsilon, 2.0**30)
        digits = MAX_BITS - max(0, math.frexp(target)[1])
        s = math.floor(math.ldexp(target, digits - _RANGE_BITS))
        self.noise = DiscreteLaplace(s, digits)
        self.limit = ONE_HOT_STEPS + math.ceil(_MAX_SCALES / self.noise.rate)
        self.dtype = np.min_scalar_type(-max(self.limit, 1 << 8))

    @property
    def scale(self) -> float:
        """The scale of the noise in the one-hot label's unit: 2/epsilon."""
        return 1 / (self.noise.rate * ONE_HOT_STEPS)

    def _draw(self, values: Labels, entropy: Entropy) -> NDArray[Any]:
        out = np.empty((values.size, self.n_classes), dtype=self.dtype)
        for rows_slice in exact.row_chunks(values.size, self.n_classes):
            labels = values[rows_slice]
            rows = self.noise.sample(labels.size * self.n_classes, entropy)
            rows = rows.reshape(labels.size, self.n_classes)
            rows[np.arange(labels.size), labels] += ONE_HOT_STEPS
            out[rows_slice] = np.clip(rows, -self.limit, self.limit, out=rows)
        return out

    def possible_mask(self, outputs: NDArray[Any]) -> Bits:
        """Say for each output whether it is a row of steps that the cut leaves."""
        if outputs.dtype.kind not in "iu" or outputs.shape[1:] != (self.n_classes,):
            return np.zeros(outputs.shape[:1], dtype=bool)
        inside = (outputs >= -self.limit) & (outputs <= self.limit)
        return np.asarray(inside.all(axis=1))

    def tail_bound(self, probability: float) -> float:
        """Return 1 in steps and the k with P(|noise| > k) at most so large."""
        odds = 2 / validate.fraction(probability=probability)
        rest = math.log(odds / (1 + math.exp(-self.noise.rate)))
        return min(ONE_HOT_STEPS + math.ceil(rest / self.noise.rate), self.limit)

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the mean of ``decode``: the one-hot labels, (n, n_classes)."""
        labels, _ = self.clip(x)
        is_label = labels[:, None] == np.arange(self.n_classes)
        return np.asarray(is_label, dtype=np.float64)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the variance of ``decode``, (n, n_classes)."""
        moments = self._soft_moments
        label, other = moments.label_variance, moments.other_variance
        return np.where(self.mean(x) == 1, label, other) / moments.gap**2

    @property
    def _soft_moments(self) -> SoftMoments:
        return soft_label_moments(self.noise.rate, ONE_HOT_STEPS, self.n_classes)

    def pair_variance(self) -> float:
        """Return the variance of the difference of two decoded numbers."""
        return self._soft_moments.pair / self._soft_moments.gap**2

    def _log_likelihood(self, x: ArrayLike, at: ArrayLike) -> FloatArray:
        rows, (labels, _) = np.asarray(at), self.clip(x)
        label_steps = rows[np.arange(len(rows)), labels]
        return np.asarray(2 * self.noise.rate * np.clip(label_steps, 0, ONE_HOT_STEPS))

    def worst_log_ratio(self) -> float:
        """Return the loss of both numbers that differ, 2^7 s/t: at most epsilon.

        Its exponential is no fraction: ``worst_ratio`` is None.
        """
        return float(Fraction(self.noise.s << _RANGE_BITS, 1 << self.noise.bits))

    def decode(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the unbiased soft labels, (n, n_classes): rows sum to 1.

        (s - b)/(a - b): a is the mean of the label's own, b that of another class.
        """
        gap = self._soft_moments.gap * self.n_classes
        # As b = (1 - (a - b))/K, only s - 1/K is asked for: from weights less 1.
        relative_weights = np.expm1(-2 * self.noise.rate * np.arange(ONE_HOT_STEPS + 1))

        def decode_block(rows: NDArray[Any]) -> FloatArray:
            weights = relative_weights[_steps_below_max(rows)]
            mean = weights.mean(axis=1, keepdims=True)
            centred = (weights - mean) / (gap * (1 + mean))
            return np.asarray(centred + 1 / self.n_classes)

        return fill_in_blocks(outputs, self.n_classes, decode_block)

    def likelihood(self, outputs: NDArray[Any]) -> FloatArray:
        """Return P(output | label) up to a factor a row, (n, n_classes).

        Two labels differ in |o_c| - |o_c - 1| only, which is 2 o_c - 1 within [0, 1].
        """
        weights = np.exp(-2 * self.noise.rate * np.arange(ONE_HOT_STEPS + 1))

        def block_likelihood(rows: NDArray[Any]) -> FloatArray:
            return np.asarray(weights[_steps_below_max(rows)])

        return fill_in_blocks(outputs, self.n_classes, block_likelihood)

    def soft(self, outputs: NDArray[Any]) -> FloatArray:
        """Return the posterior soft labels (29), (n, n_classes)."""
        weights = self.likelihood(outputs)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def cdf(self, x: ArrayLike, at: NDArray[Any]) -> FloatArray:
        """Return P(number <= at) for each number of each output, (n, n_classes)."""
        steps = np.asarray(at, dtype=np.float64)
        below = self.noise.cdf(steps - ONE_HOT_STEPS * self.mean(x))
        reached = np.where(at >= self.limit, 1.0, below)
        return np.where(at < -self.limit, 0.0, reached)

    def _refuse_listing(self, x: ArrayLike = ()) -> NoReturn:
        del x
        raise UserError(
            f"{self.name} has more than {self.most_outputs} outputs, too many to write"
            " out."
        )

    outputs = probabilities = channel = _refuse_listing
