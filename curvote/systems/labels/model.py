"""Model to deploy: from raw public columns to the publisher's classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.curves.columns import RecordPredictor


class LabelClassifier(RecordPredictor, ClassifierMixin, BaseEstimator):
    """A classifier trained on codes, of raw records.

    ``predict`` takes records (n, T) as an array or a DataFrame with the ``columns``
    (T,) in any order, and returns the publisher's labels. ``categories`` are the texts
    of columns that were told as 0 and 1, a column each
    (`curvote.base.table_file.indicator_name`).
    """

    def __init__(
        self,
        columns: list[str],
        reduction: Any,
        model: Any,
        categories: dict[str, list[str]] | None = None,
    ) -> None:
        self.columns = columns
        self.reduction = reduction
        self.model = model
        self.categories = categories

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the publisher's order."""
        return np.asarray(self.model.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, (n, K)."""
        return self._predict_rows(
            X, lambda v: self.model.predict_proba(self._reduced(v))
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record; another width or a NaN is a UserError."""
        return self._predict_rows(X, lambda v: self.model.predict(self._reduced(v)))

    def _reduced(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.reduction == "passthrough":
            return values
        return np.asarray(self.reduction.transform(values))
