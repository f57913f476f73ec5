"""Model of `majority`: one class for every record."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.curves.columns import RecordPredictor


@dataclass(eq=False, repr=False)
class ConstantClassifier(RecordPredictor, ClassifierMixin, BaseEstimator):
    """One class for every record, whatever it holds.

    ``predict`` takes records as an array or a DataFrame with the ``columns``; ``place``
    is that of the one of ``classes`` (K,) that it returns.
    """

    columns: list[str]
    classes: list[str]
    place: int

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the one label for each record; a missing column is a UserError."""
        label = self.classes_[self.place]
        return self._predict_rows(X, lambda values: np.full(len(values), label))
