"""A finished classifier of raw curves, as MLflow stores it: every part is public."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.classifier import Linear
from curvote.errors import InternalError, UserError
from curvote.representation.encoding import Encoding

Array = NDArray[np.float64]


class CurveClassifier(ClassifierMixin, BaseEstimator):
    """A finished linear classifier of raw curves: all its parts are public.

    ``predict`` takes curves (n, T) on ``grid`` (T,), as an array or a DataFrame whose
    columns are named after the grid points, and returns the publisher's labels.
    ``constants`` are those of ``rescale``; ``coef`` (d,) and ``intercept`` judge what
    ``judge`` names ("rescaled" or "coefficients").
    """

    def __init__(
        self,
        grid: Array,
        encoding: dict[str, Any],
        coef: Array,
        intercept: float,
        classes: tuple[str, str],
    ) -> None:
        self.grid = grid
        self.encoding = encoding
        self.coef = coef
        self.intercept = intercept
        self.classes = classes

    @classmethod
    def of(
        cls,
        encoding: Encoding,
        grid: Array,
        line: Linear,
        classes: tuple[str, str],
    ) -> CurveClassifier:
        """Build the classifier from an encoding and what the server averaged."""
        if line.feature_map != encoding.feature_map:
            raise InternalError(f"{line.feature_map} judged as {encoding.feature_map}")
        negative, positive = classes
        public = encoding.to_json()
        return cls(grid, public, line.coef, line.intercept, (negative, positive))

    @property
    def columns(self) -> list[str]:
        """The names of the columns that ``predict`` takes: the grid points."""
        return grid_names(self.grid)

    @property
    def classes_(self) -> NDArray[Any]:
        """The two labels, negative first."""
        return np.asarray(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> Array:
        """Return f(x) for each curve: above 0 is the positive class."""
        encoding = Encoding.from_json(self.encoding)
        line = Linear(self.coef, self.intercept, encoding.feature_map)
        return line.decision(encoding.features(_matrix(X, self.grid)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each curve; another width or a NaN is a UserError."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])


def grid_names(grid: ArrayLike) -> list[str]:
    """Return the column names of raw curves: the grid points, written shortest."""
    return [f"{point:.12g}" for point in np.asarray(grid)]


def _matrix(X: Any, grid: Array) -> Array:
    """Return curves as an array; DataFrame columns are matched by name, not place."""
    names = grid_names(grid)
    if hasattr(X, "columns"):
        given = [str(name) for name in X.columns]
        missing = sorted(set(names) - set(given))
        if missing:
            raise UserError(
                f"{len(missing)} columns are missing, such as {missing[0]!r}; there must"
                f" be {len(names)}, named after the grid points, {names[0]!r} to"
                f" {names[-1]!r}."
            )
        X = X.set_axis(given, axis=1)[names].to_numpy()
    return np.asarray(X, dtype=np.float64)
