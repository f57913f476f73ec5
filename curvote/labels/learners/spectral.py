"""Least squares of the codes on the first eigenvectors of the features' graph."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner
from curvote.labels.learners.choice import judged, judged_rows, likeliest
from curvote.labels.spectral import Spectral
from curvote.validate import FloatArray

# Records an anchor stands for, where nobody states the number of anchors.
_RECORDS = 3
_ANCHORS = 2000
_MOST = 400
# Keeps least squares solvable where the records span fewer columns.
_JITTER = 1e-10


class SpectralVotes(Learner):
    """Least squares of the decoded codes on the first ``m`` columns of a `Spectral`.

    ``anchors`` None: 2,000, or a third of the records if those are fewer than 6,000.
    ``spectral``: a fitted `Spectral`, whose graph is then taken as it is.
    """

    def __init__(
        self,
        m: int | None = None,
        anchors: int | None = None,
        neighbours: int = 5,
        spectral: Spectral | None = None,
    ) -> None:
        self.m = m
        self.anchors = anchors
        self.neighbours = neighbours
        self.spectral = spectral

    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Learn in blocks of codes; with m None the number of columns too."""
        self.spectral_ = self._graph(X, codes.n_classes, unlabelled)
        ties = self.spectral_.ties(X)
        self._solve(ties, codes)
        rows = judged_rows(len(X), codes.n_classes, rng)
        self._tune(ties[rows], codes[rows])
        self.left_out_rows_ = rows
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes of the records' anchors, weighted."""
        return np.asarray(self.spectral_.ties(X) @ self.at_anchors_)

    def _graph(
        self, X: FloatArray, n_classes: int, unlabelled: FloatArray | None
    ) -> Spectral:
        if self.spectral is not None and fitted(self.spectral):
            return self.spectral
        every = X if unlabelled is None else np.vstack([X, unlabelled])
        anchors = self.anchors or min(_ANCHORS, -(-len(every) // _RECORDS))
        m = self.m or min(anchors, max(_MOST, 2 * n_classes))
        return Spectral(m, anchors, min(self.neighbours, anchors), 0).fit(every)

    def _solve(self, ties: csr_array, codes: Codes) -> None:
        """Make the columns orthonormal on the records, so that fewer are the first."""
        columns = self.spectral_.components_
        gram = columns.T @ ((ties.T @ ties) @ columns)
        gram[np.diag_indices_from(gram)] += _JITTER * len(codes)
        root = cholesky(gram, lower=True)
        self.columns_ = solve_triangular(root, columns.T, lower=True).T
        self.coef_ = self.columns_.T @ sums(ties, codes)

    def _tune(self, ties: csr_array, codes: Codes) -> None:
        basis, decoded = ties @ self.columns_, codes.decode()
        likely = codes.likelihood()
        tried = [
            judged("spectral", {"m": m}, self._left_out(basis, decoded, m), likely)
            for m in self._grid(len(codes))
        ]
        self.tried_ = tried
        best = likeliest(tried)
        m = best.params["m"]
        self.chosen_ = dict(best.params)
        self.left_out_ = self._left_out(basis, decoded, m)
        self.at_anchors_ = self.columns_[:, :m] @ self.coef_[:m]

    def _grid(self, n: int) -> list[int]:
        most = self.columns_.shape[1]
        if self.m is not None:
            return [min(self.m, most)]
        powers = np.rint(2 ** (np.arange(2, 40) / 2)).astype(int)
        return [int(m) for m in powers if m <= min(most, n // 4)] or [1]

    def _left_out(self, basis: FloatArray, decoded: FloatArray, m: int) -> FloatArray:
        """Return the votes without each record's own code, by its leverage."""
        part = basis[:, :m]
        own = np.einsum("nm,nm->n", part, part)[:, None]
        return np.asarray((part @ self.coef_[:m] - own * decoded) / (1 - own))


def fitted(spectral: Spectral) -> bool:
    """Say whether a transformer has learned a graph."""
    try:
        check_is_fitted(spectral)
    except NotFittedError:
        return False
    return True


def sums(ties: csr_array, codes: Codes) -> FloatArray:
    """Return the decoded codes summed at the anchors, (anchors, K), in blocks."""
    total = np.zeros((ties.shape[1], codes.n_classes))
    for rows, part in codes.blocks():
        total += ties[rows].T @ part.decode()
    return total
