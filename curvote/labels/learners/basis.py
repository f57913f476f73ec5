"""Columns of a graph on the records that have codes, and regressions on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.sparse import csr_array

from curvote.labels.learners.smoothing import FullSmoother, Mask, Smoother
from curvote.labels.spectral import Spectral
from curvote.validate import FloatArray

# Records an anchor stands for, where nobody states the number of anchors.
_RECORDS = 3
_ANCHORS = 2000
_MOST = 400
# Keeps the columns independent where the records span fewer.
_JITTER = 1e-10
# Less of a column is nothing.
_LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns Q = W C with Q'Q = I on n records; few numbers at anchors make all of it.

    ``ties`` W (n, anchors) is sparse, ``columns`` C is (anchors, M), ``values`` (M,)
    are the graph's eigenvalues. Fewer columns are the first ones.
    """

    ties: csr_array
    columns: FloatArray
    values: FloatArray

    @classmethod
    def from_graph(cls, spectral: Spectral, X: FloatArray) -> Self:
        """Return the columns of a fitted graph on the records X (n, d)."""
        ties, columns = spectral.ties(X), spectral.components_
        gram = columns.T @ ((ties.T @ ties) @ columns)
        gram[np.diag_indices_from(gram)] += _JITTER * len(X)
        root = cholesky(gram, lower=True)
        turned = solve_triangular(root, columns.T, lower=True).T
        return cls(ties, turned, spectral.eigenvalues_)

    @property
    def width(self) -> int:
        """Return M, the number of columns."""
        return int(self.columns.shape[1])

    def take(self, rows: object) -> Basis:
        """Return the same columns on some of the records."""
        return Basis(self.ties[rows], self.columns, self.values)

    def first_columns(self, m: int) -> FloatArray:
        """Return the first columns of Q, (n, m)."""
        return np.asarray(self.ties @ self.columns[:, :m])

    def shrinkage(self, m: int, steps: float) -> FloatArray:
        """Return the share that is kept of each column, (M,): eigenvalue^steps.

        It is ridge regression with penalty eigenvalue^-steps - 1 on a column; whole
        numbers are steps of a random walk between records and anchors.
        """
        share = self.values**steps * (np.arange(self.width) < m)
        return np.where(share < _LEAST, 0, share)


class BasisRegression(FullSmoother):
    """Regression on the columns of a `Basis`, each shrunk by ``shrinkage`` (M,).

    ``coefficients`` of targets are what it learns of them, (M, K).
    """

    def __init__(
        self, basis: Basis, shrinkage: FloatArray, own_weight: FloatArray
    ) -> None:
        self.basis = basis
        self.shrinkage = shrinkage
        self.own_weight = own_weight

    def coefficients(self, targets: FloatArray) -> FloatArray:
        """Return the coefficients (M, K) of targets (n, K)."""
        basis = self.basis
        return np.asarray(
            self.shrinkage[:, None] * (basis.columns.T @ (basis.ties.T @ targets))
        )

    def smooth(self, targets: FloatArray) -> FloatArray:
        """Return the fitted values."""
        basis = self.basis
        coef = self.coefficients(targets)
        return np.asarray(basis.ties @ (basis.columns @ coef))

    def without(self, mask: Mask) -> Smoother:
        """Return the regression on the other records."""
        return _PartialRegression(self, mask)


class _PartialRegression(Smoother):
    """A regression that learns from some of the records, and votes for all."""

    def __init__(self, full: BasisRegression, mask: Mask) -> None:
        used = full.shrinkage > 0
        self._columns = full.basis.columns[:, used] * np.sqrt(full.shrinkage[used])
        self._ties = full.basis.ties
        self._rest = np.flatnonzero(~mask)
        lost = self._ties[np.flatnonzero(mask)]
        share = len(self._rest) / len(mask)
        gram = -self._columns.T @ ((lost.T @ lost) @ self._columns)
        shrinkage = full.shrinkage[used]
        # I on all records, and the penalty of the records that are left
        gram[np.diag_indices_from(gram)] += shrinkage + share * (1 - shrinkage)
        self._factor = cho_factor(gram)
        self.own_weight = np.where(
            mask[:, None], 0, np.minimum(full.own_weight / share, 0.5)
        )

    def smooth(self, targets: FloatArray) -> FloatArray:
        sums = self._ties[self._rest].T @ targets[self._rest]
        coef = cho_solve(self._factor, self._columns.T @ sums)
        return np.asarray(self._ties @ (self._columns @ coef))


def make_regression(basis: Basis, shrinkage: FloatArray) -> BasisRegression:
    """Return the regression with its leverages."""
    return BasisRegression(basis, shrinkage, leverages(basis, shrinkage[:, None]))


def leverages(basis: Basis, shrinkage: FloatArray) -> FloatArray:
    """Return the weights of own targets, (n, g), in regressions that keep (M, g)."""
    return np.asarray(basis.first_columns(basis.width) ** 2 @ shrinkage)


def fit_graph(
    X: FloatArray,
    n_classes: int,
    *,
    m: int | None = None,
    anchors: int | None = None,
    neighbours: int = 5,
) -> Spectral:
    """Return the fitted graph of public records X (n, d); None: a number that suits.

    2,000 anchors, or a third of the records if these are fewer than 6,000; 400 columns,
    or two a class. The anchors' seed is fixed: one graph for the same records.
    """
    count = anchors or min(_ANCHORS, -(-len(X) // _RECORDS))
    columns = m or min(count, max(_MOST, 2 * n_classes))
    near = min(neighbours, count) if anchors is None else neighbours
    return Spectral(columns, count, near, random_state=0).fit(X)
