"""Model of cell systems: a scorecard of raw records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.curves.columns import RecordPredictor
from curvote.curves.encoding import Encoding
from curvote.curves.partition import Array, Partitions
from curvote.learning.cells import predict_cells


@dataclass(eq=False, repr=False)
class CellClassifier(RecordPredictor, ClassifierMixin, BaseEstimator):
    """Table of scores by cell and class; all its parts are public.

    ``predict`` takes curves or records of a table (n, T), as an array or a DataFrame
    with the ``columns`` (T,) in any order, and returns the publisher's labels.
    ``encoding`` is `Encoding.to_json`, ``cuts`` are `Partitions.columns` as lists, of Q
    partitions into C cells, and ``scores`` (Q, C, K) are added up over partitions. They
    order the classes and are no probabilities, so there is no ``predict_proba``.
    """

    columns: list[str]
    encoding: dict[str, Any]
    cuts: dict[str, Any]
    scores: Array
    classes: list[str]

    @classmethod
    def from_scorecard(
        cls,
        encoding: Encoding,
        columns: Iterable[str],
        partitions: Partitions,
        scores: Array,
        classes: Iterable[str],
    ) -> CellClassifier:
        """Return the classifier of an encoding and a decoded scorecard."""
        cuts = {name: values.tolist() for name, values in partitions.columns.items()}
        return cls(list(columns), encoding.to_json(), cuts, scores, list(classes))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record; another width or a NaN is a UserError."""
        encoding, scores = Encoding.from_json(self.encoding), np.asarray(self.scores)
        partitions = Partitions.from_columns(self.cuts, encoding.d)
        return self._predict_rows(
            X,
            lambda v: self.classes_[
                predict_cells(scores, partitions, encoding.encode(v).z)
            ],
        )
