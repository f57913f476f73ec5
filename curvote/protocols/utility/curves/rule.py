"""A linear rule on coefficients as a classifier of scikit-learn's form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model._base import LinearClassifierMixin

from curvote.validate import FloatArray


class Rule(LinearClassifierMixin, BaseEstimator):
    """Answers 1 where ``coef`` (d,) and ``intercept`` lead above 0, else 0."""

    def __init__(self, coef: FloatArray, intercept: float) -> None:
        self.coef = coef
        self.intercept = intercept

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Rule:
        """Return itself: it was made elsewhere."""
        return self

    @property
    def coef_(self) -> FloatArray:
        """The coefficients, (1, d)."""
        return np.atleast_2d(self.coef)

    @property
    def intercept_(self) -> FloatArray:
        """The intercept, (1,)."""
        return np.atleast_1d(self.intercept)

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The places of the two classes."""
        return np.array([0, 1])

    @property
    def n_features_in_(self) -> int:
        """The number of coefficients."""
        return len(self.coef)

    def __sklearn_is_fitted__(self) -> bool:
        return True
