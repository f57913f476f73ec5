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
SHARE_HALVINGS = 60


def decide_side(
    counts: ArrayLike, draws: ArrayLike, target: float, confidence: float
) -> NDArray[np.int8]:
    """Return 1 where the share is above the target, -1 below, 0 while open.

    ``counts`` of ``draws`` >= 0 draws were hits. Whatever the share, and however often
    one looks, the wrong side is ever named with probability at most 1 - confidence.
    """
    needed = -math.log1p(-validate.fraction(confidence=confidence))
    at = validate.fraction(target=target)
    hits, number = _as_floats(counts, draws)
    above = _log_wealth(hits, number - hits, at) >= needed
    below = _log_wealth(number - hits, hits, 1 - at) >= needed
    return above.astype(np.int8) - below.astype(np.int8)


def _log_wealth(hits: FloatArray, misses: FloatArray, target: float) -> FloatArray:
    """Return the log wealth of a bet that the share is above the target."""
    from scipy.special import betaincc, betaln

    near = min(target + NEAR, (1 + target) / 2)
    near_part = _log_likelihood(hits, misses, near) - math.log(2)
    share = betaincc(hits + 1, misses + 1, target)
    with np.errstate(divide="ignore"):
        total_part = betaln(hits + 1, misses + 1) + np.log(share)
    beyond = total_part - math.log(2 * (1 - target))
    mixture = np.logaddexp(near_part, beyond)
    return np.asarray(mixture - _log_likelihood(hits, misses, target))


def _log_likelihood(hits: FloatArray, misses: FloatArray, share: float) -> FloatArray:
    """Return the log-likelihood of hits and misses at a share."""
    return hits * math.log(share) + misses * math.log1p(-share)


def anytime_interval(
    counts: ArrayLike, draws: ArrayLike, confidence: float
) -> Interval:
    """Return the ends of each share's interval, valid at every look.

    With the confidence all intervals of a share, at whatever numbers of draws, cover
    it together. The stake is spread by the arcsine law (Robbins 1970).
    """
    needed = -math.log1p(-validate.fraction(confidence=confidence))
    hits, number = _as_floats(counts, draws)
    misses = number - hits
    low = _lower_share(hits, misses, needed)
    return low, 1 - _lower_share(misses, hits, needed)


def _lower_share(hits: FloatArray, misses: FloatArray, needed: float) -> FloatArray:
    """Return the least share that the wealth does not refute."""
    from scipy.special import betaln, xlog1py, xlogy

    stake = betaln(hits + 0.5, misses + 0.5) - betaln(0.5, 0.5)
    low = np.zeros_like(stake)
    high = hits / np.maximum(hits + misses, 1)
    for _ in range(SHARE_HALVINGS):
        middle = (low + high) / 2
        wealth = stake - xlogy(hits, middle) - xlog1py(misses, -middle)
        refuted = wealth >= needed
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.asarray(np.where(hits > 0, low, 0.0))


def _as_floats(counts: ArrayLike, draws: ArrayLike) -> Interval:
    """Return hits and numbers of draws as floats."""
    hits, number = np.broadcast_arrays(counts, draws)
    return hits.astype(np.float64), number.astype(np.float64)
