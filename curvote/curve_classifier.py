"""A finished classifier of raw curves, as MLflow stores it: every part is public."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.classes import Classes
from curvote.classifier import Linear
from curvote.errors import InternalError, UserError
from curvote.representation.encoding import Encoding

Array = NDArray[np.float64]


class CurveClassifier(ClassifierMixin, BaseEstimator):
    """A finished linear classifier of raw curves: all its parts are public.

    ``predict`` takes curves (n, T), as an array or a DataFrame with the ``columns``
    (T,) in any order, and returns the publisher's labels. ``encoding`` is
    `Encoding.to_json`; ``coef`` (d,) and ``intercept`` judge what its ``judge`` names.
    """

    def __init__(
        self,
        columns: list[str],
        encoding: dict[str, Any],
        coef: Array,
        intercept: float,
        classes: tuple[str, str],
    ) -> None:
        self.columns = columns
        self.encoding = encoding
        self.coef = coef
        self.intercept = intercept
        self.classes = classes

    @classmethod
    def of(
        cls,
        encoding: Encoding,
        grid: Iterable[float | str],
        line: Linear,
        classes: Iterable[str],
    ) -> CurveClassifier:
        """Build the classifier from an encoding and what the server averaged.

        ``grid`` are the grid points, or the names of the features of a table.
        """
        if line.feature_map != encoding.feature_map:
            raise InternalError(f"{line.feature_map} judged as {encoding.feature_map}")
        names, public = grid_names(grid), encoding.to_json()
        return cls(names, public, line.coef, line.intercept, Classes(classes).two)

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
        return line.decision(encoding.features(matrix(X, self.columns)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each curve; another width or a NaN is a UserError."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])


def grid_names(grid: Iterable[float | str]) -> list[str]:
    """Return the column names of raw curves: the grid points, written shortest.

    The names of a table's features are what they are.
    """
    return [point if isinstance(point, str) else f"{point:.12g}" for point in grid]


def chosen(X: Any, columns: list[str]) -> Any:
    """Return these columns of a DataFrame, by name; a missing one is a UserError."""
    given = [str(name) for name in getattr(X, "columns", ())]
    missing = [name for name in columns if name not in {*given}]
    if missing:
        wanted = ", ".join(map(repr, columns[:3]))
        raise UserError(
            f"{len(missing)} columns are missing, such as {missing[0]!r}; there must be"
            f" {len(columns)}, by name: {wanted} .. {columns[-1]!r}."
        )
    return X.set_axis(given, axis=1)[columns]


def matrix(X: Any, columns: list[str]) -> Array:
    """Return curves as an array; DataFrame columns are matched by name, not place."""
    table = chosen(X, columns).to_numpy() if hasattr(X, "columns") else X
    try:
        return np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError("a curve holds something that is no number.") from None
