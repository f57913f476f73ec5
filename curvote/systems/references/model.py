"""Model of `majority`: one class for every record."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.curves.columns import RecordPredictor


class ConstantClassifier(RecordPredictor, ClassifierMixin, BaseEstimator):
    """One class for every record, whatever it holds.

    ``predict`` takes records as an array or a DataFrame with the ``columns``; ``place``
    is that of the one of ``classes`` (K,) that it returns.
    """

    def __init__(self, columns: list[str], classes: list[str], place: int) -> None:
        self.columns = columns
        self.classes = classes
        self.place = place

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the publisher's order."""
        return np.asarray(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the one label for each record; a missing column is a UserError."""
        label = self.classes_[self.place]
        return self._predict_rows(X, lambda values: np.full(len(values), label))
