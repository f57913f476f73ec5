"""Model averaging: one classifier from many, weighted by their utilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.validate import FloatArray

WHEN_NONE_PASS = ("soft", "best", "uniform")
WEIGHTS = ("excess", "distance")


def averaging_weights(
    utility: ArrayLike, cutoff: float, when_none_pass: str, form: str = "excess"
) -> tuple[FloatArray, bool]:
    """Return weights [B] that sum to 1, and whether none passed the cutoff.

    MRMA, equation (10), ``form`` "excess": weights in proportion to max(u - ``cutoff``,
    0), u the ``utility`` [B] after reversal, ``cutoff`` (r0) in [1/2, 1). The authors'
    public code has another form, and their tables 1 and 2 match it, "distance": who
    passes weighs |u - 1/2|, u clipped to [0, 1]. The paper is silent where nobody
    passes; ``when_none_pass`` decides: ``soft`` max(u - 1/2, 0) (uniform where that is
    0 too), ``best`` the one of highest utility, ``uniform``.
    """
    validate.one_of(WEIGHTS, weights=form)
    value = validate.finite(utility=utility)
    validate.one_of(WHEN_NONE_PASS, when_none_pass=when_none_pass)
    if value.ndim != 1 or not value.size:
        raise UserError(f"utility has shape {value.shape}; it must be [B], not empty.")
    if not validate.rule_holds(lambda: 0.5 <= cutoff < 1):
        raise UserError(f"cutoff is {cutoff!r}; it must lie in [0.5, 1).")
    none_passed = not bool((value > cutoff).any())
    if none_passed:
        raw = _fallback_weights(value, when_none_pass)
    else:
        raw = (_excess_weights if form == "excess" else _distance_weights)(
            value, cutoff
        )
    return _normalise_weights(raw), none_passed


def average_classifiers(
    coef: ArrayLike, intercept: ArrayLike, weights: ArrayLike
) -> tuple[FloatArray, float]:
    """Return the weighted mean of ``coef`` [B, d] and ``intercept`` [B].

    MRMA, equation (11): for linear classifiers the average of the decision functions is
    the classifier of the averaged (unnormalised) coefficient vectors.
    ``averaging_weights`` is [B]; reverse the classifiers first.
    """
    slopes, constants = validate.finite(coef=coef), validate.finite(intercept=intercept)
    share = validate.finite(weights=weights)
    if slopes.ndim != 2 or not constants.shape == share.shape == slopes.shape[:1]:
        raise UserError(
            f"coef {slopes.shape}, intercept {constants.shape} and weights"
            f" {share.shape} must be [B, d], [B] and [B]."
        )
    return share @ slopes, float(share @ constants)


def _excess_weights(utility: FloatArray, over: float) -> FloatArray:
    return np.maximum(utility - over, 0)


def _distance_weights(utility: FloatArray, over: float) -> FloatArray:
    # Who passes is above 1/2, so only the upper end of [0, 1] can clip.
    return np.where(utility > over, np.minimum(utility, 1) - 0.5, 0)


def _fallback_weights(utility: FloatArray, how: str) -> FloatArray:
    if how == "soft":
        return _excess_weights(utility, 0.5)
    if how == "best":
        best = np.zeros(utility.size)
        best[np.argmax(utility)] = 1
        return best
    return np.ones(utility.size)


def _normalise_weights(raw: FloatArray) -> FloatArray:
    top = raw.max()
    if top == 0:
        return np.full(raw.size, 1 / raw.size)
    relative = raw / top  # first, so that the sum cannot overflow
    return np.asarray(relative / relative.sum())
