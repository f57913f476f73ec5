"""Confidence intervals for shares, means and differences of draws."""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.learning.intervals import Interval, binomial_interval, one_sided_ends


def mean_share_interval(
    counts: ArrayLike, draws: int, confidence: float
) -> tuple[float, float]:
    """Return an interval for the mean of n records' shares.

    ``counts`` (n,) are hits. The records are fixed and their shares differ: their sum
    lies closer to its mean than a binomial one with the mean share (Hoeffding 1956,
    theorem 5), so Clopper-Pearson of all draws together covers. One miss from the end,
    where the theorem says nothing, Markov's inequality stands in.
    """
    hits = np.asarray(counts)
    total = hits.size * draws
    low, high = binomial_interval(hits.sum(), total, confidence)
    ends = (1 - confidence) / 2 / total
    if hits.sum() <= 1:
        low = np.minimum(low, ends)
    if hits.sum() >= total - 1:
        high = np.maximum(high, 1 - ends)
    return float(low), float(high)


# No stake loses more than this part of the wealth.
MOST_LOST = 0.75
MEAN_HALVINGS = 40


def population_mean_interval(
    low: ArrayLike, high: ArrayLike, confidence: float
) -> tuple[float, float]:
    """Return an interval for a population's mean, from n sampled records.

    ``low`` (n,) and ``high`` (n,) bracket each record's value in [0, 1]; both are the
    value itself where that is exact, or an unbiased draw of it. Covers with the
    confidence for every population, without an approximation, at any n: wealth of
    stakes on each record in turn, set by those before it (Waudby-Smith & Ramdas 2024,
    theorem 3). The order of the records must not depend on their values.
    """
    missed = (1 - validate.fraction(confidence=confidence)) / 2
    below, above = _check_shares(low), 1 - _check_shares(high)
    return _lower_end(below, missed), 1 - _lower_end(above, missed)


def _check_shares(values: ArrayLike) -> FloatArray:
    """Return the values, checked to be shares in [0, 1]."""
    shares = validate.finite(values=values)
    if shares.ndim != 1 or not shares.size or shares.min() < 0 or shares.max() > 1:
        raise UserError("values must be shares in [0, 1], one for each record.")
    return shares


def _lower_end(values: FloatArray, missed: float) -> float:
    """Return the largest mean that the wealth refutes as too small."""
    n, counts = len(values), np.arange(1, len(values) + 1)
    means = (0.5 + np.cumsum(values)) / (counts + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (counts + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    needed = -math.log(missed)
    stakes = np.asarray(np.sqrt(-2 * math.log(missed) / (n * before)))
    low, high = 0.0, 1.0
    for _ in range(MEAN_HALVINGS):
        middle = (low + high) / 2
        staked = np.minimum(stakes, MOST_LOST / middle)
        wealth = np.cumsum(np.log1p(staked * (values - middle)))
        low, high = (middle, high) if wealth.max() >= needed else (low, middle)
    return low


# Steps of the staircase that stands in for a curve; more are hardly narrower.
STAIRCASE_STEPS = 16


def paired_interval(
    more: ArrayLike, less: ArrayLike, draws: int, confidence: float
) -> Interval:
    """Return the ends of an interval for the difference of two shares.

    Of ``draws`` independent draws ``more`` were hits of the first alone and ``less``
    of the second alone. The difference is q t: how often the two differ, and which way
    on average. Their number tells of q, and given it the hits of the first tell of t,
    both by exact binomial tests. A pair (q, t) is refuted by the product of the two
    tests' levels (Fisher 1932), so that neither is held against its own worst case.
    """
    missed = (1 - validate.fraction(confidence=confidence)) / 2
    first, second = np.broadcast_arrays(more, less)
    low = -_upper_difference(second, first, draws, missed)
    return low, _upper_difference(first, second, draws, missed)


def _upper_difference(
    more: FloatArray, less: FloatArray, draws: int, missed: float
) -> FloatArray:
    """Return the largest difference that is not refuted.

    In a band the level of q is at most that of its inner edge, which leaves t the rest
    of the product; the outer edge is the worst of the band.
    """
    from scipy.special import lambertw

    product = float(np.exp(1 + lambertw(-missed / np.e, -1).real))
    levels = product ** np.linspace(0, 1, STAIRCASE_STEPS + 1)
    differ = more + less
    best, worst = np.zeros(differ.shape), np.full(differ.shape, -1.0)
    for inner, outer in pairwise(levels):
        least, most = one_sided_ends(differ, draws, outer)
        _, turn = one_sided_ends(more, np.maximum(differ, 1), product / inner)
        t = np.where(differ > 0, 2 * turn - 1, 1.0)
        best = np.maximum(best, most * t)
        worst = np.maximum(worst, np.where(t > 0, 0.0, least * t))
    return np.where(best > 0, best, worst)
