"""Classifier of a source's columns, as a run stores it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.curves.columns import RecordPredictor


class RecordClassifier(RecordPredictor, ClassifierMixin, BaseEstimator):
    """A classifier of some columns of a record.

    ``predict`` takes records (n, T) as an array or a DataFrame with the ``columns``
    (T,) in any order, and returns the publisher's labels, ``classes`` (K,). ``model``
    reads the columns at ``places`` (D,) and answers with places of classes.
    """

    def __init__(
        self,
        columns: list[str],
        places: Sequence[int],
        model: Any,
        classes: Sequence[str],
    ) -> None:
        self.columns = columns
        self.places = places
        self.model = model
        self.classes = classes

    @property
    def read(self) -> list[str]:
        """Names of the columns that the model reads."""
        return [self.columns[place] for place in self.places]

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the publisher's order."""
        return np.asarray(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record; another width or a NaN is a UserError."""
        places = list(self.places)
        return self._predict_rows(
            X, lambda values: self.classes_[self.model.predict(values[:, places])]
        )
