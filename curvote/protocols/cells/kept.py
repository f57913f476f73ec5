"""A scorecard of raw records, as MLflow stores it: every part is public."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.named_columns import OfRecords
from curvote.representation.encoding import Encoding
from curvote.representation.partition import Partitions
from curvote.server.cells import named

Array = NDArray[np.float64]


class CellClassifier(OfRecords, ClassifierMixin, BaseEstimator):
    """A finished table of scores by cell and class: all its parts are public.

    ``predict`` takes curves or records of a table (n, T), as an array or a DataFrame
    with the ``columns`` (T,) in any order, and returns the publisher's labels.
    ``encoding`` is `Encoding.to_json`, ``cuts`` are `Partitions.columns` as lists, of Q
    partitions into C cells, and ``scores`` (Q, C, K) are added up over partitions. They
    order the classes and are no probabilities, so there is no ``predict_proba``.
    """

    def __init__(
        self,
        columns: list[str],
        encoding: dict[str, Any],
        cuts: dict[str, Any],
        scores: Array,
        classes: list[str],
    ) -> None:
        self.columns = columns
        self.encoding = encoding
        self.cuts = cuts
        self.scores = scores
        self.classes = classes

    @classmethod
    def of(
        cls,
        encoding: Encoding,
        columns: Iterable[str],
        asked: Partitions,
        scores: Array,
        classes: Iterable[str],
    ) -> CellClassifier:
        """Build the classifier from an encoding and what the server decoded."""
        cuts = {name: values.tolist() for name, values in asked.columns.items()}
        return cls(list(columns), encoding.to_json(), cuts, scores, list(classes))

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the publisher's order."""
        return np.asarray(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record; another width or a NaN is a UserError."""
        encoding, scores = Encoding.from_json(self.encoding), np.asarray(self.scores)
        asked = Partitions.read(self.cuts, encoding.d)
        return self._answered(
            X, lambda v: self.classes_[named(scores, asked, encoding.encode(v).z)]
        )
