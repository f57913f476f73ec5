"""Shares of draws that may be looked at as often as one likes.

Wealth that a fair game would not multiply: a mixture of likelihood ratios against a
share is at least 1/a, at any time whatsoever, with probability at most a (Ville 1939;
Robbins 1970). So a look costs nothing, and one may stop at any of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.utility.evidence.binomial import Interval
from curvote.validate import FloatArray

# Half of the stake is on a share this far from the target, half on all beyond it.
NEAR = 0.05
HALVINGS = 60


def decided(
    counts: ArrayLike, draws: ArrayLike, target: float, confidence: float
) -> NDArray[np.int8]:
    """Return 1 where the share is above the target, -1 where below, 0 while unknown.

    ``counts`` of ``draws`` >= 0 draws were hits. Whatever the share, and however often
    one looks, the wrong side is ever named with probability at most 1 - confidence.
    """
    needed = -math.log1p(-validate.fraction(confidence=confidence))
    at = validate.fraction(target=target)
    hits, number = _pair(counts, draws)
    above = _wealth(hits, number - hits, at) >= needed
    below = _wealth(number - hits, hits, 1 - at) >= needed
    return above.astype(np.int8) - below.astype(np.int8)


def _wealth(hits: FloatArray, misses: FloatArray, target: float) -> FloatArray:
    """Return the log of the wealth of who stakes on a share above the target."""
    from scipy.special import betaincc, betaln

    near = min(target + NEAR, (1 + target) / 2)
    one = _log_likelihood(hits, misses, near) - math.log(2)
    share = betaincc(hits + 1, misses + 1, target)
    with np.errstate(divide="ignore"):
        all_of_them = betaln(hits + 1, misses + 1) + np.log(share)
    beyond = all_of_them - math.log(2 * (1 - target))
    both = np.logaddexp(one, beyond)
    return np.asarray(both - _log_likelihood(hits, misses, target))


def _log_likelihood(hits: FloatArray, misses: FloatArray, share: float) -> FloatArray:
    return hits * math.log(share) + misses * math.log1p(-share)


def interval(counts: ArrayLike, draws: ArrayLike, confidence: float) -> Interval:
    """Return the ends of each share's interval, in [0, 1], valid at every look.

    With the confidence all intervals of a share, at whatever numbers of draws, cover
    it together. The stake is spread by the arcsine law (Robbins 1970).
    """
    needed = -math.log1p(-validate.fraction(confidence=confidence))
    hits, number = _pair(counts, draws)
    misses = number - hits
    low = _end(hits, misses, needed)
    return low, 1 - _end(misses, hits, needed)


def _end(hits: FloatArray, misses: FloatArray, needed: float) -> FloatArray:
    """Return the least share that the wealth does not refute, by halving."""
    from scipy.special import betaln, xlog1py, xlogy

    stake = betaln(hits + 0.5, misses + 0.5) - betaln(0.5, 0.5)
    low = np.zeros_like(stake)
    high = hits / np.maximum(hits + misses, 1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        wealth = stake - xlogy(hits, middle) - xlog1py(misses, -middle)
        refuted = wealth >= needed
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.asarray(np.where(hits > 0, low, 0.0))


def _pair(counts: ArrayLike, draws: ArrayLike) -> Interval:
    hits, number = np.broadcast_arrays(counts, draws)
    return hits.astype(np.float64), number.astype(np.float64)
