"""Classifier of raw records for the target, as MLflow stores it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.curves.columns import RecordPredictor
from curvote.curves.encoding import Encoding
from curvote.systems.transfer import settings
from curvote.systems.transfer.method.model import Model


@dataclass(eq=False, repr=False)
class TransferClassifier(RecordPredictor, ClassifierMixin, BaseEstimator):
    """Classifier combined from the releases of several servers.

    ``predict`` takes records (n, T) as an array or a DataFrame with the ``columns``
    (T,) in any order, and returns the publisher's labels. ``encoding`` is
    `Encoding.to_json`, ``model`` is `Model.to_json`.
    """

    columns: list[str]
    encoding: dict[str, Any]
    model: dict[str, Any]

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the publisher's order."""
        return np.asarray(self.model["task"]["classes"])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores: (n,) of the second of two classes, else (n, K)."""
        model = Model.from_json(self.model)
        return self._predict_rows(X, lambda v: model.decision_function(self._encode(v)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record; another width or a NaN is a UserError."""
        model = Model.from_json(self.model)
        return self._predict_rows(X, lambda v: model.predict(self._encode(v)))

    def _encode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the servers' features: coefficients, or z."""
        encoding = Encoding.from_json(self.encoding)
        encoded = encoding.encode(values)
        return (
            encoded.coefficients if settings.uses_coefficients(encoding) else encoded.z
        )
