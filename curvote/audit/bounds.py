"""Checks of losses: the declared law, exactly, and draws, with proven bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from curvote.mechanisms.exact import exp_bounds
from curvote.validate import FloatArray


def proportion_bounds(
    hits: ArrayLike, n: int, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on a probability from ``hits`` of ``n``.

    Each is wrong with probability ``alpha`` at most (Clopper & Pearson 1934).
    """
    k = np.asarray(hits, dtype=np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, alpha), 0.0)
    missed = np.maximum(n - k, 1)
    # The upper bound of k hits is 1 minus the lower bound of the n - k misses.
    high = np.where(k < n, 1 - betaincinv(missed, k + 1, alpha), 1.0)
    return low, high


def least_epsilon(
    hits: ArrayLike, hits2: ArrayLike, n: int, delta: float, alpha: float
) -> FloatArray:
    """Return the epsilon that an event proves for a pair of inputs.

    From ``hits`` of ``n`` draws for x and ``hits2`` of ``n`` for x2, by bounds that are
    wrong with probability ``alpha`` each; -inf where nothing is proved.
    """
    low, _ = proportion_bounds(hits, n, alpha)
    _, high = proportion_bounds(hits2, n, alpha)
    gained = np.maximum(low - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(gained) - np.log(high))


def bernstein(values: FloatArray, most: ArrayLike, alpha: float) -> FloatArray:
    """Return the deviation bound of column means of bounded values.

    Wrong with probability ``alpha`` for each column (Maurer & Pontil 2009, theorem 4,
    both sides).
    """
    n = len(values)
    log = np.log(4 / alpha)
    spread = np.sqrt(2 * values.var(axis=0, ddof=1) * log / n)
    return np.asarray(spread + 7 * np.asarray(most) * log / (3 * (n - 1)))


def exceeds_exp(ratio: Fraction, epsilon: float) -> bool:
    """Return exactly whether ``ratio`` > e^``epsilon``.

    e^epsilon is irrational, so enough bits always settle it.
    """
    parts = epsilon.as_integer_ratio()
    bits = 256 + ratio.numerator.bit_length() + ratio.denominator.bit_length()
    while True:
        low, high = exp_bounds(*parts, bits)
        if ratio.numerator * high <= ratio.denominator << bits:
            return False
        if ratio.numerator * low > ratio.denominator << bits:
            return True
        bits *= 2
