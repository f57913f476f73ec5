"""Intervals for the difference of two shares that were counted on the same draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.utility.evidence import binomial
from curvote.utility.evidence.binomial import Interval

# The part of what may be missed that the rate of differences is given; their sign,
# which decides the width where they are rare and on both sides, has the rest.
RATE = 0.2


def interval(
    more: ArrayLike, less: ArrayLike, draws: int, confidence: float
) -> Interval:
    """Return the ends of an interval for P(first alone) - P(second alone), in [-1, 1].

    Of ``draws`` independent draws ``more`` were hits of the first alone and ``less``
    of the second alone. The difference is q (2 t - 1): how often the two differ, and
    how often it is then the first that hits. Given their number the differences are
    binomial in t, so Clopper-Pearson's intervals of q and t hold together with the
    confidence.
    """
    missed = 1 - validate.fraction(confidence=confidence)
    first, second = np.asarray(more), np.asarray(less)
    differ = first + second
    rate = binomial.interval(differ, draws, 1 - RATE * missed)
    sign = binomial.interval(first, np.maximum(differ, 1), 1 - (1 - RATE) * missed)
    below = np.where(differ > 0, 2 * sign[0] - 1, -1)
    above = np.where(differ > 0, 2 * sign[1] - 1, 1)
    products = np.array([q * t for q in rate for t in (below, above)])
    return products.min(axis=0), products.max(axis=0)


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
