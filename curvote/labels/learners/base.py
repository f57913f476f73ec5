"""What every learner shares: votes for classes from public features and codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from curvote.labels.codes import Codes
from curvote.validate import FloatArray


class Learner(BaseEstimator, ABC):
    """Learns from features (n, d) and codes (n,) how likely each class is.

    Votes estimate P(class | x); noise can put them outside [0, 1]. A setting that is
    None is tuned: by the likelihood of the codes, under votes that do not know them.

    Attributes:
        chosen_: the settings in use, tuned or stated.
        left_out_: the votes (r, K) for the training records ``left_out_rows_`` (r,) by
            all others; None where the learner has none for nothing.
    """

    chosen_: dict[str, Any]
    left_out_: FloatArray | None = None
    left_out_rows_: NDArray[np.intp] | None = None

    @abstractmethod
    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Learn; ``rng`` is for what a learner draws, never for noise.

        ``unlabelled`` (u, d) are public records without a code, for learners of graphs.
        """

    @abstractmethod
    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes for records (n, d), (n, K)."""

    def fixed(self) -> Learner:
        """Return an unfitted learner in which what was tuned is stated."""
        made: Learner = clone(self)
        known = made.get_params()
        made.set_params(**{k: v for k, v in self.chosen_.items() if k in known})
        return made
