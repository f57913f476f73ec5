"""Base of all learners: votes for classes from public features and codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes


class LeftOutVotes(NamedTuple):
    """Votes (r, K) for the training records ``rows`` (r,) that do not know their code.

    None: the learner has none for nothing.
    """

    rows: NDArray[np.intp] | None = None
    votes: FloatArray | None = None


NO_VOTES = LeftOutVotes()


class TrainingSet(NamedTuple):
    """Records X (n, d), their codes (n,), and what a learner may draw from.

    ``rng`` is never for noise; ``unlabelled`` (u, d) are public records without a code.
    """

    X: FloatArray
    codes: Codes
    rng: np.random.Generator
    unlabelled: FloatArray | None

    @property
    def every(self) -> FloatArray:
        """Return all public records, with a code or without."""
        if self.unlabelled is None:
            return self.X
        return np.vstack([self.X, self.unlabelled])


class Learner(BaseEstimator, ABC):
    """Learns from features (n, d) and codes (n,) how likely each class is.

    Votes estimate P(class | x); noise can put them outside [0, 1]. A setting that is
    None is tuned: by the likelihood of the codes, under votes that do not know them.
    A subclass learns in ``_learn``.

    Attributes:
        chosen_: the settings in use, tuned or stated.
        tried_: what was tuned, a row (name, params, exponent, likelihood, se) each.
    """

    chosen_: dict[str, Any]
    tried_: list[dict[str, Any]]
    # What makes the left-out votes, and what it made: neither is stored with a learner.
    _leave_out: Callable[[], LeftOutVotes] | None = None
    _left_out: LeftOutVotes | None = None

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
        self.chosen_, self.tried_ = {}, []
        self._set_left_out(None)
        self._learn(TrainingSet(X, codes, rng, unlabelled))
        return self

    def _learn(self, data: TrainingSet) -> None:
        """Learn from ``data``, and set ``chosen_``, ``tried_`` and left-out votes."""
        raise NotImplementedError

    @abstractmethod
    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes for records (n, d), (n, K)."""

    def fixed(self) -> Learner:
        """Return an unfitted learner in which what was tuned is stated.

        It stands on the given graph: a copy of that would not be fitted.
        """
        learner: Learner = clone(self)
        choices = {**self.chosen_, "spectral": getattr(self, "spectral", None)}
        params = learner.get_params()
        learner.set_params(**{k: v for k, v in choices.items() if k in params})
        return learner

    def without_own(self) -> LeftOutVotes:
        """Return votes (r, K) for training records by all others, if there are any.

        Worked out on first use after ``fit``, and not stored with the learner.
        """
        if self._left_out is None:
            self._left_out = NO_VOTES if self._leave_out is None else self._leave_out()
        return self._left_out

    def _set_left_out(self, leave_out: Callable[[], LeftOutVotes] | None) -> None:
        """Set the function that makes left-out votes of this fit, on first use."""
        self._leave_out, self._left_out = leave_out, None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {k: v for k, v in state.items() if k not in {"_leave_out", "_left_out"}}
