"""Linear classifier of encoded records, applied by server and clients alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError

FEATURE_MAPS = ("rescaled", "coefficients", "inner_products")


def decision_sign(decision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return -1/+1 for each score; a score of 0 is -1."""
    return np.where(decision > 0, 1.0, -1.0)


def predict_indices(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indices of the classes (n,) with the largest scores.

    One of (n,) or (n, 1): class 1 above 0; (n, K): the largest, the first of equal
    ones.
    """
    if scores.ndim == 1 or scores.shape[1] == 1:
        return (scores.reshape(len(scores)) > 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1))


@dataclass(frozen=True, eq=False)
class Linear:
    """Scores features @ coef + intercept of classes, tied to their feature map.

    ``coef`` is [d] and ``intercept`` a number for two classes, [K, d] and [K] for more;
    ``feature_map`` says which features are judged: ``rescaled`` (the z in [-1, 1] that
    clients report), ``coefficients`` (those of the raw curve) or ``inner_products``
    (the raw curve's with each basis function). Values that are not finite and other
    shapes or names are a UserError.
    """

    coef: NDArray[np.float64]
    intercept: Any
    feature_map: str

    def __post_init__(self) -> None:
        validate.one_of(FEATURE_MAPS, feature_map=self.feature_map)
        coef = validate.finite(coef=self.coef).copy()
        if coef.ndim not in {1, 2} or not coef.size:
            raise UserError(
                f"coef has shape {coef.shape}; it must be a vector, [d], or one for"
                " each class, [K, d]."
            )
        intercept = validate.finite(intercept=self.intercept)
        if intercept.shape != coef.shape[:-1]:
            raise UserError(
                f"intercept has shape {intercept.shape}; give one number for each line."
            )
        coef.setflags(write=False)
        object.__setattr__(self, "coef", coef)
        constant = intercept if intercept.ndim else float(intercept)
        object.__setattr__(self, "intercept", constant)

    def decision(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return the scores [n] or [n, K] of ``features`` [n, d]."""
        values, d = validate.finite(features=features), self.coef.shape[-1]
        if values.ndim != 2 or values.shape[1] != d:
            raise UserError(
                f"features has shape {values.shape}; this classifier judges rows of"
                f" {d} values, [n, {d}]."
            )
        return np.asarray(values @ self.coef.T + self.intercept)

    def predict(self, features: ArrayLike) -> NDArray[np.int64]:
        """Return -1/+1, or places of K classes, for each row of ``features`` [n, d].

        A score of 0 gives -1, and of equal ones the first class.
        """
        places = predict_indices(self.decision(features))
        return 2 * places - 1 if self.coef.ndim == 1 else places

    def reversed(self) -> Linear:
        """Return the classifier with the opposite sign (MRMA, equation 9)."""
        return Linear(-self.coef, -self.intercept, self.feature_map)
