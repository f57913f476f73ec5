"""Exact intervals of shares, from counts of independent draws."""

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray

Interval = tuple[FloatArray, FloatArray]


def binomial_interval(
    counts: ArrayLike, draws: ArrayLike, confidence: float
) -> Interval:
    """Return the ends of each share's Clopper-Pearson interval, in [0, 1].

    ``counts`` of ``draws`` independent draws were hits, 0 <= counts <= draws; the
    shapes broadcast. Each interval by itself covers with the confidence, 0 to 1, at
    every share; the number of draws was fixed beforehand. Clopper & Pearson (1934).
    """
    missed = (1 - validate.fraction(confidence=confidence)) / 2
    hits, number = (np.asarray(part, dtype=np.float64) for part in (counts, draws))
    if not ((hits >= 0) & (hits <= number) & (number >= 1)).all():
        raise UserError("Hits lie between 0 and the number of draws, which is >= 1.")
    return one_sided_ends(hits, number, missed)


def one_sided_ends(counts: ArrayLike, draws: ArrayLike, missed: float) -> Interval:
    """Return two one-sided ends, each missed with at most ``missed``."""
    from scipy.special import betaincinv

    hits, number = np.broadcast_arrays(counts, draws)
    with np.errstate(invalid="ignore"):
        low = betaincinv(hits, number - hits + 1.0, missed)
        high = betaincinv(hits + 1.0, number - hits, 1 - missed)
    return np.where(hits > 0, low, 0.0), np.where(hits < number, high, 1.0)
