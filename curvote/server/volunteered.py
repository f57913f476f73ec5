"""Classifiers from public, labelled records alone: ridge logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from curvote.server.several import class_scores

Array = NDArray[np.float64]
Line = tuple[Array, Any]

# The penalty is |coef|^2/2 beside the sum of losses: a slope of z, whose scale is
# public, is expected to be a standard normal number. Fixed, so that nothing is tuned.
PENALTY = 1.0
# The precision of an intercept that nothing is known of: it keeps the rule finite.
FLAT_PRECISION = 1e-6
MAX_STEPS, SMALL_STEP = 50, 1e-8


def ridge_logistic(z: Array, places: NDArray[np.int64], n_classes: int = 2) -> Line:
    """Return (coef, intercept) of ridge logistic regression.

    Of two classes coef is (d,), of more a score for each: (K, d) and (K,). Where all
    have one label it is the constant classifier that names it.
    """
    from sklearn.linear_model import LogisticRegression  # takes a second

    model = LogisticRegression(C=1 / PENALTY, max_iter=1000)
    if n_classes > 2:
        return class_scores(model, z, places, n_classes)
    if len(np.unique(places)) < 2:
        return np.zeros(z.shape[1]), float(2 * places[0] - 1)
    model.fit(z, places)
    return model.coef_[0], float(model.intercept_[0])


def penalised_logistic(x: Array, signs: Array, precision: Array, right: Array) -> Array:
    """Return w (p,) of least logistic loss with a normal prior.

    The prior's ``precision`` (p, p) is positive definite, its mean precision^-1
    ``right``; by Newton's method, a step that does not help being halved.
    """

    def loss(w: NDArray[Any]) -> float:
        prior_term = float(w @ precision @ w) / 2 - float(right @ w)
        return float(np.logaddexp(0, -signs * (x @ w)).sum()) + prior_term

    w = np.linalg.solve(precision, right)
    for _ in range(MAX_STEPS):
        error_rates = expit(-signs * (x @ w))
        descent = x.T @ (signs * error_rates) + right - precision @ w
        curvature = (x.T * (error_rates * (1 - error_rates))) @ x + precision
        step = np.asarray(np.linalg.solve(curvature, descent))
        while loss(w + step) > loss(w) and np.abs(step).max() > SMALL_STEP:
            step = step / 2
        w = w + step
        if np.abs(step).max() <= SMALL_STEP * (1 + np.abs(w).max()):
            break
    return np.asarray(w)
