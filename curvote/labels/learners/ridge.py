"""Ridge regression of the decoded codes on the features themselves."""

from __future__ import annotations

from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner, LeftOut
from curvote.labels.learners.choice import judged, judged_rows, likeliest
from curvote.labels.learners.smoothing import Known
from curvote.validate import FloatArray

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
        """Solve in principal directions; with alpha None try nine."""
        self.centre_ = X.mean(axis=0)
        centred = X - self.centre_
        self.squares_, self.directions_ = np.linalg.eigh(centred.T @ centred)
        total, products = _products(centred, codes)
        self.mean_ = total / len(X)
        self.products_ = self.directions_.T @ products
        rows = judged_rows(len(X), max(codes.n_classes, X.shape[1]), rng)
        turned, judges = centred[rows] @ self.directions_, codes[rows]
        alpha = self._tuned(turned, judges, len(X))
        self.chosen_ = {"alpha": alpha}
        self._forget(partial(self._alone, turned, judges, rows, len(X)))
        shrunk = self.products_ / (self.squares_ + alpha)[:, None]
        self.coef_ = self.directions_ @ shrunk
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the regression at the records."""
        return np.asarray((X - self.centre_) @ self.coef_ + self.mean_)

    def _tuned(self, turned: FloatArray, codes: Codes, n: int) -> float:
        grid, self.tried_ = self._grid(), []
        if len(grid) == 1:
            return grid[0]
        known = Known.of(codes)
        tried = [
            judged(
                "ridge",
                {"alpha": alpha},
                self._votes_without(turned, known.decoded, alpha, n),
                known.likely,
            )
            for alpha in grid
        ]
        self.tried_ = [one.row() for one in tried]
        return float(likeliest(tried).params["alpha"])

    def _alone(
        self, turned: FloatArray, codes: Codes, rows: NDArray[np.intp], n: int
    ) -> LeftOut:
        alpha = self.chosen_["alpha"]
        return LeftOut(rows, self._votes_without(turned, codes.decode(), alpha, n))

    def _grid(self) -> list[float]:
        if self.alpha is not None:
            return [validate.positive(alpha=self.alpha)]
        scale = float(self.squares_.mean()) or 1.0
        return [float(share * scale) for share in _GRID]

    def _votes_without(
        self, turned: FloatArray, decoded: FloatArray, alpha: float, n: int
    ) -> FloatArray:
        """Return the votes without each record's own code, by its leverage."""
        shrunk = turned / (self.squares_ + alpha)
        own = (np.einsum("nd,nd->n", shrunk, turned) + 1 / n)[:, None]
        fitted = shrunk @ self.products_ + self.mean_
        return np.asarray((fitted - own * decoded) / (1 - own))


def _products(centred: FloatArray, codes: Codes) -> tuple[FloatArray, FloatArray]:
    """Return the decoded codes summed (K,), and times the features (d, K)."""
    total = np.zeros(codes.n_classes)
    products = np.zeros((centred.shape[1], codes.n_classes))
    for rows, part in codes.blocks():
        decoded = part.decode()
        total += decoded.sum(axis=0)
        products += centred[rows].T @ decoded
    return total, products
