"""Confidence intervals for shares, means and differences of draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.validate import FloatArray

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
    return one_sided_ends(*_check_counts(counts, draws), missed)


def one_sided_ends(counts: ArrayLike, draws: ArrayLike, missed: float) -> Interval:
    """Return two one-sided ends, each missed with at most ``missed``."""
    from scipy.special import betaincinv

    hits, number = np.broadcast_arrays(counts, draws)
    with np.errstate(invalid="ignore"):
        low = betaincinv(hits, number - hits + 1.0, missed)
        high = betaincinv(hits + 1.0, number - hits, 1 - missed)
    return np.where(hits > 0, low, 0.0), np.where(hits < number, high, 1.0)


def _check_counts(counts: ArrayLike, draws: ArrayLike) -> Interval:
    """Return checked hits and numbers of draws."""
    hits, number = (
        np.asarray(numbers, dtype=np.float64) for numbers in (counts, draws)
    )
    if not ((hits >= 0) & (hits <= number) & (number >= 1)).all():
        raise UserError("Hits lie between 0 and the number of draws, which is >= 1.")
    return hits, number


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
