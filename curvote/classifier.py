"""The linear classifier: what the server trains and both sides can apply."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError

FEATURE_MAPS = ("rescaled", "coefficients", "inner_products")


def sign(decision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return -1/+1 for each score; a score of 0 is -1."""
    return np.where(decision > 0, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Linear:
    """The classifier sign(features @ coef + intercept), tied to its feature map.

    ``coef`` is [d]; ``feature_map`` says which features it judges: ``rescaled`` (the
    z in [-1, 1] that clients report), ``coefficients`` (those of the raw curve) or
    ``inner_products`` (the raw curve's with each basis function). Values that are not
    finite and other shapes or names are a UserError.
    """

    coef: NDArray[np.float64]
    intercept: float
    feature_map: str

    def __post_init__(self) -> None:
        validate.one_of(FEATURE_MAPS, feature_map=self.feature_map)
        coef = validate.finite(coef=self.coef).copy()
        if coef.ndim != 1 or not coef.size:
            raise UserError(f"coef has shape {coef.shape}; it must be a vector, [d].")
        intercept = validate.finite(intercept=self.intercept)
        if intercept.ndim:
            raise UserError(f"intercept has shape {intercept.shape}; give one number.")
        coef.setflags(write=False)
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", float(intercept))

    def decision(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return the signed scores [n] of ``features`` [n, d]."""
        values = validate.finite(features=features)
        if values.ndim != 2 or values.shape[1] != self.coef.size:
            raise UserError(
                f"features has shape {values.shape}; this classifier judges rows of"
                f" {self.coef.size} values, [n, {self.coef.size}]."
            )
        return values @ self.coef + self.intercept

    def predict(self, features: ArrayLike) -> NDArray[np.int64]:
        """Return -1/+1 for each row of ``features`` [n, d]; a score of 0 gives -1."""
        return np.where(self.decision(features) > 0, 1, -1)

    def reversed(self) -> Linear:
        """Return the classifier with the opposite sign (MRMA, equation 9)."""
        return Linear(-self.coef, -self.intercept, self.feature_map)
