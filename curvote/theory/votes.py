"""Formulas of MRMA: noised votes, total variation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import binom

from curvote import validate
from curvote.errors import UserError
from curvote.validate import FloatArray


def keep_probability(epsilon: float) -> float:
    """Return q = e^epsilon / (1 + e^epsilon), for epsilon > 0 (MRMA, equation 7)."""
    return 1 / (1 + math.exp(-validate.positive(epsilon=epsilon)))


def bounded_variance(n: ArrayLike, epsilon: float) -> FloatArray:
    """Return the bound ((e^eps + 1)/(e^eps - 1))^2 / (4 n) on a utility's variance.

    ``n`` [...] >= 1 votes on the classifier at ``epsilon`` > 0 each. It is
    ``exact_variance`` at its largest, where the true accuracy is 1/2 (MRMA, theorem 3).
    """
    gain = math.tanh(validate.positive(epsilon=epsilon) / 2)
    return np.asarray(1 / (4 * _check_votes(n) * gain**2))


def reversal_right_exact(r: ArrayLike, n: ArrayLike, epsilon: float) -> FloatArray:
    """Return the probability that reversal leaves the better of f and -f.

    ``r`` [...] in [0, 1] is the true accuracy of f, ``n`` [...] its number of votes at
    ``epsilon`` > 0 each. With X ~ Bin(n, p), p = q r + (1 - q)(1 - r), and the rule of
    ``curvote.server.reversal`` (2 X < n reverses, a tie keeps) it is P(2 X >= n) for
    r > 1/2 and P(2 X < n) for r < 1/2. At r = 1/2 both are as good: 1.
    """
    accuracy, votes = _check_accuracy(r), _check_votes(n)
    keep_chance = binom.sf(
        np.ceil(votes / 2) - 1, votes, _right_vote_chance(accuracy, epsilon)
    )
    right = np.where(accuracy > 0.5, keep_chance, 1 - keep_chance)
    return np.where(accuracy == 0.5, 1.0, right)


def reversal_right_normal(r: ArrayLike, n: ArrayLike, epsilon: float) -> FloatArray:
    """Return Phi(sqrt(n) (2q - 1) |r - 1/2| / sqrt(p (1 - p))), the normal form.

    The same arguments as ``reversal_right_exact``, to which it is an approximation
    that knows no ties. It puts right the probability of MRMA, theorem 5, in which the
    noise of the votes is missing.
    """
    accuracy, votes = _check_accuracy(r), _check_votes(n)
    p = _right_vote_chance(accuracy, epsilon)
    return _normal_probability(votes, np.abs(p - 0.5), p)


def reversal_right_printed(r: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return Phi(sqrt(n) |r - 1/2| / sqrt(r (1 - r))), as printed in MRMA, theorem 5.

    Too large for every finite epsilon: it is that of votes without noise.
    """
    accuracy = _check_accuracy(r)
    return _normal_probability(_check_votes(n), np.abs(accuracy - 0.5), accuracy)


def _normal_probability(
    votes: FloatArray, distance: FloatArray, p: FloatArray
) -> FloatArray:
    spread = np.sqrt(p * (1 - p))
    with np.errstate(divide="ignore"):  # a vote that is always the same: certainty
        return np.asarray(ndtr(np.sqrt(votes) * distance / spread))


def _right_vote_chance(accuracy: FloatArray, epsilon: float) -> FloatArray:
    """Return p, the probability of a vote "right" after randomization."""
    q = keep_probability(epsilon)
    return np.asarray(q * accuracy + (1 - q) * (1 - accuracy))


def _check_accuracy(r: ArrayLike) -> FloatArray:
    accuracy = validate.finite(r=r)
    if not ((accuracy >= 0) & (accuracy <= 1)).all():
        raise UserError(f"r is {r!r}; an accuracy must lie in [0, 1].")
    return accuracy


def _check_votes(n: ArrayLike) -> FloatArray:
    votes = validate.finite(n=n)
    if not ((votes >= 1) & (votes % 1 == 0)).all():
        raise UserError(f"n is {n!r}; a number of votes is whole and at least 1.")
    return votes
