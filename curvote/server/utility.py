"""Votes on classifiers: utilities, reversal, model averaging and drift alerts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.validate import FloatArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Utility:
    """Estimated accuracies [B] and their standard errors [B], not clipped."""

    value: FloatArray
    standard_error: FloatArray


def estimate_utility(positive: ArrayLike, n: ArrayLike, q: float) -> Utility:
    """Return unbiased accuracies from ``positive`` [B] of ``n`` [B] votes.

    Each vote was kept with probability ``q`` in (1/2, 1] and else turned round (MRMA,
    equation 7). The estimate is (positive/n + q - 1)/(2q - 1), equation (8), unbiased
    by theorem 3; it may leave [0, 1]. The standard error plugs the observed rate into
    ``utility_variance``. Counts outside 0..n, n < 1 or another q are a UserError.
    """
    votes, total = check_vote_counts(positive, n)
    rate = votes / total
    gain = _vote_gain(q)
    error = np.sqrt(rate * (1 - rate) / total) / gain
    return Utility((rate + q - 1) / gain, error)


def utility_variance(r: ArrayLike, n: ArrayLike, q: float) -> FloatArray:
    """Return the exact variance of the estimate for true accuracy ``r``.

    p = q r + (1-q)(1-r) is the probability of a vote "right" after randomization. This
    is the exact variance, not the bound printed in MRMA, theorem 3.
    """
    accuracy, total = np.asarray(r, dtype=np.float64), np.asarray(n)
    if not ((accuracy >= 0) & (accuracy <= 1)).all():
        raise UserError(f"r is {r!r}; an accuracy must lie in [0, 1].")
    if not (total >= 1).all():
        raise UserError(f"n is {n!r}; every classifier needs at least one vote.")
    p = q * accuracy + (1 - q) * (1 - accuracy)
    return np.asarray(p * (1 - p) / (total * _vote_gain(q) ** 2))


def check_vote_counts(positive: ArrayLike, n: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return valid vote counts as integers, 0 <= positive <= n."""
    positives, total = validate.finite(positive=positive), validate.finite(n=n)
    if positives.shape != total.shape or positives.ndim != 1:
        raise UserError(
            f"positive has shape {positives.shape} and n {total.shape}; both must be"
            " [B]."
        )
    valid = (positives >= 0) & (positives <= total) & (total >= 1)
    valid &= (positives % 1 == 0) & (total % 1 == 0)
    if not valid.all():
        b = int(np.argmin(valid))
        raise UserError(
            f"classifier {b} has {positives[b]:g} positive of {total[b]:g} votes;"
            " counts"
            " must be whole, 0 <= positive <= n and n >= 1."
        )
    return positives.astype(np.int64), total.astype(np.int64)


def _vote_gain(q: float) -> float:
    if not 0.5 < q <= 1:
        raise UserError(f"q is {q!r}; the probability to keep a vote lies in (1/2, 1].")
    return 2 * q - 1
