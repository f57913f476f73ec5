"""What every learner shares: votes for classes from public features and codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from curvote.labels.codes import Codes
from curvote.validate import FloatArray


class Learner(BaseEstimator, ABC):
    """Learns from features (n, d) and codes (n,) how likely each class is.

    ``left_out_`` (n, K) are the votes for each training record by all others, None
    where the learner has none for nothing. Votes estimate P(class | x); noise can put
    them outside [0, 1].
    """

    left_out_: FloatArray | None = None

    @abstractmethod
    def fit(self, X: FloatArray, codes: Codes, rng: np.random.Generator) -> Self:
        """Learn; ``rng`` is for what a learner draws, never for noise."""

    @abstractmethod
    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes for records (n, d), (n, K)."""
