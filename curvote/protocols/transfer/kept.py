"""The target's classifier of raw records, as MLflow stores it: plain, public values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.named_columns import OfRecords
from curvote.protocols.transfer import stated
from curvote.representation.encoding import Encoding
from curvote.transfer.model import Model


class TransferClassifier(OfRecords, ClassifierMixin, BaseEstimator):
    """What several servers released, combined for one of them.

    ``predict`` takes records (n, T) as an array or a DataFrame with the ``columns``
    (T,) in any order, and returns the publisher's labels. ``encoding`` is
    `Encoding.to_json`, ``model`` is `Model.to_json`.
    """

    def __init__(
        self, columns: list[str], encoding: dict[str, Any], model: dict[str, Any]
    ) -> None:
        self.columns = columns
        self.encoding = encoding
        self.model = model

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the publisher's order."""
        return np.asarray(self.model["task"]["classes"])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores: (n,) of the second of two classes, else (n, K)."""
        model = self._model()
        return self._answered(X, lambda v: model.decision_function(self._numbers(v)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record; another width or a NaN is a UserError."""
        model = self._model()
        return self._answered(X, lambda v: model.predict(self._numbers(v)))

    def _model(self) -> Model:
        return Model.from_json(self.model)

    def _numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the servers speak of: coefficients, or z."""
        encoding = Encoding.from_json(self.encoding)
        encoded = encoding.encode(values)
        return encoded.coefficients if stated.raw(encoding) else encoded.z
