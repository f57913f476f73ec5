"""Intervals for the difference of two shares that were counted on the same draws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.utility.evidence import binomial
from curvote.utility.evidence.binomial import Interval
from curvote.validate import FloatArray

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
    return -_upper_difference(second, first, draws, missed), _upper_difference(
        first, second, draws, missed
    )


def _upper_difference(
    more: FloatArray, less: FloatArray, draws: int, missed: float
) -> FloatArray:
    """Return the largest difference that is not refuted.

    In a band the level of q is at most that of its inner edge, which leaves t the rest
    of the product; the outer edge is the worst of the band.
    """
    product = _product_level(missed)
    levels = product ** np.linspace(0, 1, STAIRCASE_STEPS + 1)
    differ = more + less
    best, worst = np.zeros(differ.shape), np.full(differ.shape, -1.0)
    for inner, outer in pairwise(levels):
        least, most = binomial.one_sided_ends(differ, draws, outer)
        _, turn = binomial.one_sided_ends(more, np.maximum(differ, 1), product / inner)
        t = np.where(differ > 0, 2 * turn - 1, 1.0)
        best = np.maximum(best, most * t)
        worst = np.maximum(worst, np.where(t > 0, 0.0, least * t))
    return np.where(best > 0, best, worst)


def _product_level(missed: float) -> float:
    """Return the level c (1 - ln c) of the product of two tests."""
    from scipy.special import lambertw

    return float(np.exp(1 + lambertw(-missed / np.e, -1).real))


def mean_difference_interval(
    more: ArrayLike, less: ArrayLike, draws: int, confidence: float
) -> tuple[float, float]:
    """Return an interval for the records' mean difference.

    The records are fixed and differ, so each of the two rates has half of what may be
    missed (`binomial.mean_share_interval`).
    """
    half_confidence = 1 - (1 - validate.fraction(confidence=confidence)) / 2
    first = binomial.mean_share_interval(more, draws, half_confidence)
    second = binomial.mean_share_interval(less, draws, half_confidence)
    return first[0] - second[1], first[1] - second[0]
