"""Ridge regression of the decoded codes on the features themselves."""

from __future__ import annotations

from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners import smoothing
from curvote.systems.labels.learners.base import Learner, LeftOutVotes

# Of alpha, times the mean square of the features' principal directions.
_GRID = 10.0 ** np.arange(-6, 3)


class RidgeVotes(Learner):
    """Ridge regression with an intercept; ``alpha`` > 0 as scikit-learn's Ridge."""

    def __init__(self, alpha: float | None = None) -> None:
        self.alpha = alpha

    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Fit in principal directions; with alpha None try nine."""
        self.centre_ = X.mean(axis=0)
        centred = X - self.centre_
        self.squares_, self.directions_ = np.linalg.eigh(centred.T @ centred)
        total = np.zeros(codes.n_classes)
        products = np.zeros((X.shape[1], codes.n_classes))
        for block, part in codes.blocks():
            decoded = part.decode()
            total += decoded.sum(axis=0)
            products += centred[block].T @ decoded
        self.mean_ = total / len(X)
        self.products_ = self.directions_.T @ products
        rows = smoothing.sample_rows(len(X), max(codes.n_classes, X.shape[1]), rng)
        turned, judges = centred[rows] @ self.directions_, codes[rows]
        alpha = self._tune_alpha(turned, judges, len(X))
        self.chosen_ = {"alpha": alpha}
        self._set_left_out(partial(self._leave_one_out, turned, judges, rows, len(X)))
        shrunk = self.products_ / (self.squares_ + alpha)[:, None]
        self.coef_ = self.directions_ @ shrunk
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the regression at the records."""
        return np.asarray((X - self.centre_) @ self.coef_ + self.mean_)

    def _tune_alpha(self, turned: FloatArray, codes: Codes, n: int) -> float:
        self.tried_ = []
        if self.alpha is not None:
            return validate.positive(alpha=self.alpha)
        code_targets, tried = smoothing.CodeTargets.from_codes(codes), []
        scale = float(self.squares_.mean()) or 1.0
        for alpha in (float(share * scale) for share in _GRID):
            votes = self._left_out_votes(turned, code_targets.decoded, alpha, n)
            trial = smoothing.make_trial(
                "ridge", {"alpha": alpha}, votes, code_targets.likely
            )
            tried.append(trial)
        self.tried_ = [trial.to_row() for trial in tried]
        return float(smoothing.likeliest_trial(tried).params["alpha"])

    def _leave_one_out(
        self, turned: FloatArray, codes: Codes, rows: NDArray[np.intp], n: int
    ) -> LeftOutVotes:
        alpha = self.chosen_["alpha"]
        votes = self._left_out_votes(turned, codes.decode(), alpha, n)
        return LeftOutVotes(rows, votes)

    def _left_out_votes(
        self, turned: FloatArray, decoded: FloatArray, alpha: float, n: int
    ) -> FloatArray:
        """Return the votes without each record's own code, by its leverage."""
        shrunk = turned / (self.squares_ + alpha)
        leverage = (np.einsum("nd,nd->n", shrunk, turned) + 1 / n)[:, None]
        fitted = shrunk @ self.products_ + self.mean_
        return np.asarray((fitted - leverage * decoded) / (1 - leverage))
