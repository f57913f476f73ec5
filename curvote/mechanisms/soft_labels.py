"""ALIBI label mechanism: Laplace noise on one-hot labels, and its soft labels.

A soft label is s_c = w_c / S, S the sum of all K weights, which are independent given
the label. As 1/S^2 is the integral of t exp(-t S) over t > 0, moments are integrals of
products, one factor a class. Over x = log t the trapezoidal rule is exact to rounding:
with steps of 1/5 its error is about exp(-5 pi^2) of the integral.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from curvote.validate import FloatArray

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
    t = _integration_nodes(2 * rate * one_steps, n_classes)
    near_square, far_square, crossed = _moment_integrals(rate, one_steps, n_classes, t)
    # E(s_c - s_j) = K/2 E(s_c - s_j)^2 over uniform labels: soft labels are posteriors.
    gap = min(near_square + (n_classes - 2) / 2 * far_square, 1.0)
    pair = _variance_of(near_square, gap)
    # Of s_c - 1/K = the mean over all j of s_c - s_j.
    share = (n_classes - 1) / n_classes
    label_variance = _variance_of(
        share * (near_square + (n_classes - 2) * crossed) / n_classes, share * gap
    )
    # Soft labels sum to 1, so Cov(s_c, s_j) = -Var(s_c)/(K - 1).
    other_variance = pair - label_variance * (n_classes + 1) / (n_classes - 1)
    return SoftMoments(
        gap,
        label_variance,
        max(other_variance, _ROUNDING * (gap / n_classes) ** 2),
        pair,
    )


def _moment_integrals(
    rate: float, one_steps: int, n_classes: int, t: FloatArray
) -> tuple[float, float, float]:
    """Return the three second moments of differences of soft labels.

    For two classes there is no third: what is returned for it is finite.
    """
    differ, other = _weight_differences(rate, one_steps), clipped_law(rate, one_steps)
    damped = np.exp(-t[:, None] * _soft_weights(rate, one_steps))
    p, q = other[::-1] * damped, other * damped
    q0 = q.sum(axis=1)
    two, three = q0 ** (n_classes - 2), q0 ** max(n_classes - 3, 0)
    products = (
        ((p @ differ**2) * q).sum(axis=1) * two,
        ((q @ differ**2) * q).sum(axis=1) * p.sum(axis=1) * three,
        (p * (q @ differ.T) ** 2).sum(axis=1) * three,
    )
    near_square, far_square, crossed = (
        float(t**2 @ values * _STEP) for values in products
    )
    return near_square, far_square, crossed


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


def _weight_differences(rate: float, one_steps: int) -> FloatArray:
    """Return all differences of weights without cancellation."""
    k = np.arange(one_steps + 1)
    less = -np.expm1(-2 * rate * np.abs(k[:, None] - k))
    lower = np.tril(_soft_weights(rate, one_steps)[:, None] * less)
    return np.asarray(lower - lower.T)


def _integration_nodes(epsilon: float, n_classes: int) -> FloatArray:
    """Return the nodes t, in equal steps of log t."""
    first = -_BEFORE - math.log(n_classes)
    count = math.ceil((min(epsilon, _SMALLEST) + _AFTER - first) / _STEP)
    return np.asarray(np.exp(first + _STEP * np.arange(count)))
