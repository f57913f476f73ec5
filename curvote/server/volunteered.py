"""A classifier from public, labelled records alone: ridge logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]
Line = tuple[Array, Any]

# The penalty is |coef|^2/2 beside the sum of losses: a slope of z, whose scale is
# public, is expected to be a standard normal number. Fixed, so that nothing is tuned.
PENALTY = 1.0
# The precision of an intercept that nothing is known of: it keeps the rule finite.
FLAT = 1e-6
STEPS, SMALL = 50, 1e-8
# The score of a class that no record has, below any other.
ABSENT = -1e6


def logistic(z: Array, places: NDArray[np.int64], n_classes: int = 2) -> Line:
    """Return coef and intercept for records ``z`` (n, d) of classes ``places`` (n,).

    They are (d,) and a number for two classes, (K, d) and (K,), a score for each, for
    more. Where all records are of one class it is the constant that names it.
    """
    from sklearn.linear_model import LogisticRegression  # takes a second

    seen = np.unique(places)
    if len(seen) < 2:
        coef, intercept = np.zeros((1, z.shape[1])), np.zeros(1)
    else:
        made = LogisticRegression(C=1 / PENALTY, max_iter=1000).fit(z, places)
        coef, intercept = made.coef_, made.intercept_
    if n_classes == 2:
        constant = intercept[0] if len(seen) == 2 else 2 * seen[0] - 1
        return coef[0], float(constant)
    if len(seen) == 2:  # its one line tells the second from the first
        coef, intercept = np.vstack([0 * coef, coef]), np.r_[0.0, intercept]
    scores = np.zeros((n_classes, z.shape[1])), np.full(n_classes, ABSENT)
    scores[0][seen], scores[1][seen] = coef, intercept
    return scores


def penalised(x: Array, signs: Array, precision: Array, right: Array) -> Array:
    """Return w (p,) of least logistic loss on ``x`` (n, p) with a normal prior.

    The prior's ``precision`` (p, p) is positive definite, its mean precision^-1
    ``right``; by Newton's method, a step that does not help being halved.
    """

    def loss(w: Array) -> float:
        own = float(w @ precision @ w) / 2 - float(right @ w)
        return float(np.logaddexp(0, -signs * (x @ w)).sum()) + own

    w = np.linalg.solve(precision, right)
    for _ in range(STEPS):
        wrong = expit(-signs * (x @ w))
        descent = x.T @ (signs * wrong) + right - precision @ w
        curvature = (x.T * (wrong * (1 - wrong))) @ x + precision
        step = np.linalg.solve(curvature, descent)
        while loss(w + step) > loss(w) and np.abs(step).max() > SMALL:
            step = step / 2
        w = w + step
        if np.abs(step).max() <= SMALL * (1 + np.abs(w).max()):
            break
    return np.asarray(w)
