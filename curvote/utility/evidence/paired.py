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
STEPS = 16


def interval(
    more: ArrayLike, less: ArrayLike, draws: int, confidence: float
) -> Interval:
    """Return the ends of an interval for P(first alone) - P(second alone), in [-1, 1].

    Of ``draws`` independent draws ``more`` were hits of the first alone and ``less``
    of the second alone. The difference is q t: how often the two differ, and which way
    on average. Their number tells of q, and given it the hits of the first tell of t,
    both by exact binomial tests. A pair (q, t) is refuted by the product of the two
    tests' levels (Fisher 1932), so that neither is held against its own worst case.
    """
    missed = (1 - validate.fraction(confidence=confidence)) / 2
    first, second = np.broadcast_arrays(more, less)
    return -_upper(second, first, draws, missed), _upper(first, second, draws, missed)


def _upper(more: FloatArray, less: FloatArray, draws: int, missed: float) -> FloatArray:
    """Return the largest q t that is not refuted, with q in bands.

    In a band the level of q is at most that of its inner edge, which leaves t the rest
    of the product; the outer edge is the worst of the band.
    """
    product = _product(missed)
    levels = product ** np.linspace(0, 1, STEPS + 1)
    differ = more + less
    best, worst = np.zeros(differ.shape), np.full(differ.shape, -1.0)
    for inner, outer in pairwise(levels):
        least, most = binomial.sides(differ, draws, outer)
        _, turn = binomial.sides(more, np.maximum(differ, 1), product / inner)
        t = np.where(differ > 0, 2 * turn - 1, 1.0)
        best = np.maximum(best, most * t)
        worst = np.maximum(worst, np.where(t > 0, 0.0, least * t))
    return np.where(best > 0, best, worst)


def _product(missed: float) -> float:
    """Return what the product of two levels falls below that often: c (1 - ln c)."""
    from scipy.special import lambertw

    return float(np.exp(1 + lambertw(-missed / np.e, -1).real))


def average(
    more: ArrayLike, less: ArrayLike, draws: int, confidence: float
) -> tuple[float, float]:
    """Return an interval for the records' mean difference; ``more``, ``less`` (n,).

    The records are fixed and differ, so each of the two rates has half of what may be
    missed (`binomial.average`).
    """
    each = 1 - (1 - validate.fraction(confidence=confidence)) / 2
    first = binomial.average(more, draws, each)
    second = binomial.average(less, draws, each)
    return first[0] - second[1], first[1] - second[0]
