"""How good a classifier is on unperturbed data, estimated from randomized votes."""

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
    """Estimated accuracies [B] and their standard errors [B]; not clipped to [0, 1]."""

    value: FloatArray
    standard_error: FloatArray


def estimate(positive: ArrayLike, n: ArrayLike, q: float) -> Utility:
    """Return unbiased accuracies from ``positive`` [B] of ``n`` [B] votes "right".

    Each vote was kept with probability ``q`` in (1/2, 1] and else turned round (MRMA,
    equation 7). The estimate is (positive/n + q - 1)/(2q - 1), equation (8), unbiased
    by theorem 3; it may leave [0, 1]. The standard error plugs the observed rate into
    ``exact_variance``. Counts outside 0..n, n < 1 or another q are a UserError.
    """
    votes, total = counts(positive, n)
    rate = votes / total
    gain = _gain(q)
    error = np.sqrt(rate * (1 - rate) / total) / gain
    return Utility((rate + q - 1) / gain, error)


def exact_variance(r: ArrayLike, n: ArrayLike, q: float) -> FloatArray:
    """Return the variance of the estimate for true accuracy ``r``: p(1-p)/(n(2q-1)^2).

    p = q r + (1-q)(1-r) is the probability of a vote "right" after randomization. This
    is the exact variance, not the bound printed in MRMA, theorem 3.
    """
    accuracy, total = np.asarray(r, dtype=np.float64), np.asarray(n)
    if not ((accuracy >= 0) & (accuracy <= 1)).all():
        raise UserError(f"r is {r!r}; an accuracy must lie in [0, 1].")
    if not (total >= 1).all():
        raise UserError(f"n is {n!r}; every classifier needs at least one vote.")
    p = q * accuracy + (1 - q) * (1 - accuracy)
    return np.asarray(p * (1 - p) / (total * _gain(q) ** 2))


def counts(positive: ArrayLike, n: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the vote counts as integers if they are whole and 0 <= positive <= n."""
    given, total = validate.finite(positive=positive), validate.finite(n=n)
    if given.shape != total.shape or given.ndim != 1:
        raise UserError(
            f"positive has shape {given.shape} and n {total.shape}; both must be [B]."
        )
    right = (given >= 0) & (given <= total) & (total >= 1)
    right &= (given % 1 == 0) & (total % 1 == 0)
    if not right.all():
        b = int(np.argmin(right))
        raise UserError(
            f"classifier {b} has {given[b]:g} positive of {total[b]:g} votes; counts"
            " must be whole, 0 <= positive <= n and n >= 1."
        )
    return given.astype(np.int64), total.astype(np.int64)


def _gain(q: float) -> float:
    if not 0.5 < q <= 1:
        raise UserError(f"q is {q!r}; the probability to keep a vote lies in (1/2, 1].")
    return 2 * q - 1
