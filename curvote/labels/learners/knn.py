"""The mean of the decoded codes of the nearest records (VEC section 5.1, eq. 31)."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.neighbors import NearestNeighbors

from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner
from curvote.validate import FloatArray


class KNN(Learner):
    """Averages the decoded codes of the ``k`` nearest training records."""

    def __init__(self, k: int = 200) -> None:
        self.k = k

    def fit(self, X: FloatArray, codes: Codes, rng: np.random.Generator) -> Self:
        """Keep the records and their decoded codes."""
        self.decoded_ = codes.decode()
        self.near_ = NearestNeighbors(n_neighbors=min(self.k, len(X) - 1)).fit(X)
        self.left_out_ = self.decoded_[self.near_.kneighbors(None)[1]].mean(axis=1)
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the mean code of the neighbours."""
        return np.asarray(self.decoded_[self.near_.kneighbors(X)[1]].mean(axis=1))
