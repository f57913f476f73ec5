"""The mean of the decoded codes of the nearest records (VEC section 5.1, eq. 31)."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.neighbors import NearestNeighbors

from curvote import validate
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner
from curvote.labels.learners.choice import judged, likeliest
from curvote.validate import FloatArray


class KNN(Learner):
    """Averages the decoded codes of the ``k`` nearest training records."""

    def __init__(self, k: int | None = None, sweeps: int | None = None) -> None:
        self.k = k
        self.sweeps = sweeps

    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Keep the records and their decoded codes."""
        self.decoded_ = codes.decode()
        likely = codes.likelihood()
        grid = self._grid(len(X), X.shape[1], codes.epsilon)
        self.near_ = NearestNeighbors(n_neighbors=max(grid)).fit(X)
        left_out = means(self.decoded_, self.near_.kneighbors()[1], grid)
        self.tried_ = [
            judged("knn", {"k": k, "sweeps": 0}, votes, likely)
            for k, votes in left_out.items()
        ]
        self.chosen_ = dict(likeliest(self.tried_).params)
        self.left_out_ = left_out[self.chosen_["k"]]
        self.left_out_rows_ = np.arange(len(X))
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the mean code of the neighbours."""
        near = self.near_.kneighbors(X, self.chosen_["k"], return_distance=False)
        return np.asarray(self.decoded_[near].mean(axis=1))

    def _grid(self, n: int, d: int, epsilon: float) -> list[int]:
        if self.k is None:
            return grid(n, d, epsilon)
        k = validate.at_least(1, k=self.k)
        if k >= n:
            raise UserError(
                f"k is {k}, but there are {n} records; a record has {n - 1} neighbours."
            )
        return [k]


def grid(n: int, d: int, epsilon: float) -> list[int]:
    """Return what to try: eps^(-2d/(d+2)) n^(2/(d+2)) (VEC eq. 35), and around it."""
    centre = epsilon ** (-2 * d / (d + 2)) * n ** (2 / (d + 2))
    wanted = np.rint(centre * 2.0 ** np.arange(-2, 9)).astype(int)
    return sorted({int(k) for k in wanted.clip(1, max(1, n // 4))})


def means(
    values: FloatArray, near: np.ndarray, grid: list[int]
) -> dict[int, FloatArray]:
    """Return the mean over the first k of ``near`` (n, most), (n, K), for each k."""
    total, found = np.zeros((len(near), values.shape[1])), {}
    for j in range(max(grid)):
        total += values[near[:, j]]
        if j + 1 in grid:
            found[j + 1] = total / (j + 1)
    return found
