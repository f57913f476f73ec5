"""Neighbour graph of public features: its eigenvectors, and regressions on them.

Records are tied to anchors, so that time is linear in their number and a new record
needs its anchors only (anchor graphs: Liu, He and Chang 2010).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh, solve_triangular
from scipy.sparse import csr_array
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from curvote.base import validate
from curvote.base.entropy import check_random_state as checked
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.base.warning_filters import FILTERS
from curvote.learning.estimators import numeric_records
from curvote.systems.labels.learners.smoothing import FullSmoother, Mask, Smoother

# Anchors are the means of at most so many records each: more move them no further.
_PER_ANCHOR = 25
_ROUNDS = 10
# Eigenvalues below it are those of a graph of lower rank, up to rounding.
_RANK = 1e-10


@dataclass(eq=False, repr=False)
class Spectral(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The first ``m`` eigenvectors of an anchor graph of the features.

    Anchors are k-means centres. A row of W, (n, anchors), ties a record to its nearest
    ``neighbours`` anchors with weights exp(-2 d^2 / d_last^2) that sum to 1; D are the
    column sums of W. The eigenvectors of D^-1/2 W'W D^-1/2, largest eigenvalue first,
    are mapped back by W D^-1/2 and scaled to unit mean square over the records of
    ``fit``. The first column is constant; fewer columns are the first ones of more. A
    graph of lower rank has no more columns than that.

    Parameters
    ----------
    m : int, default=20
        How many eigenvectors, 1 <= m <= anchors.
    anchors : int, default=2000
        How many anchors, at most the number of records.
    neighbours : int, default=5
        To how many anchors a record is tied, 1 <= neighbours <= anchors.
    random_state : int, RandomState, Generator or None, default=None
        What k-means draws from. Features are public: there is no noise here.

    Attributes
    ----------
    anchors_ : array (anchors, d)
        The centres; equal ones are one.
    components_ : array (anchors, m)
        What an anchor adds to each column.
    eigenvalues_ : array (m,)
        Decreasing; the first is 1.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : array
        Their names, where X was a DataFrame.

    Notes
    -----
    A UserError (a ValueError) names parameters or data that are out of range.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> columns = Spectral(m=3, anchors=20, random_state=0).fit_transform(X)
    >>> print(columns.shape, np.ptp(columns[:, 0]) < 1e-9)
    (200, 3) True
    """

    m: int = 20
    anchors: int = 2000
    neighbours: int = 5
    random_state: Any = None

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Learn the graph of the records X, (n, d)."""
        records: FloatArray = numeric_records(self, X, ensure_min_samples=2)
        self._check_parameters(len(records))
        self.anchors_ = _kmeans_centres(records, self.anchors, self.random_state)
        tied = self._anchor_weights(records)
        sizes = tied.sum(axis=0)
        # An anchor that no record is near has no part in the graph.
        scale = np.divide(1, np.sqrt(sizes), out=np.zeros_like(sizes), where=sizes > 0)
        graph = (tied.T @ tied).toarray() * scale[:, None] * scale
        last, count = len(graph) - 1, min(self.m, len(self.anchors_))
        values, vectors = eigh(graph, subset_by_index=[last - count + 1, last])
        positive = values > _RANK
        self.eigenvalues_ = values[positive][::-1]
        vectors = vectors[:, positive][:, ::-1]
        largest = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
        # The mean square of a mapped column is its eigenvalue / n.
        roots = np.sqrt(self.eigenvalues_ / len(records))
        self.components_ = scale[:, None] * vectors / roots
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the columns of records (n, d), (n, m)."""
        return np.asarray(self.ties(X) @ self.components_)

    def ties(self, X: ArrayLike) -> csr_array:
        """Return W of records (n, d): sparse, (n, anchors), rows sum to 1."""
        check_is_fitted(self)
        return self._anchor_weights(numeric_records(self, X, reset=False))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[1])

    def _check_parameters(self, n: int) -> None:
        checked(self.random_state)
        anchors = validate.at_least(1, anchors=self.anchors)
        for name in ("m", "neighbours"):
            value = validate.at_least(1, **{name: getattr(self, name)})
            if value > anchors:
                raise UserError(
                    f"{name} is {value}, anchors {anchors}; {name} must be at most the"
                    " number of anchors."
                )
        if anchors > n:
            raise UserError(
                f"anchors is {anchors}, but X has n_samples = {n}; anchors must be at"
                " most the number of records."
            )

    def _anchor_weights(self, X: FloatArray) -> csr_array:
        near = NearestNeighbors(n_neighbors=min(self.neighbours, len(self.anchors_)))
        distances, places = near.fit(self.anchors_).kneighbors(X)
        last = np.maximum(distances[:, -1:], np.finfo(np.float64).tiny)
        weights = np.exp(-2 * (distances / last) ** 2)
        weights /= weights.sum(axis=1, keepdims=True)
        starts = np.arange(0, places.size + 1, places.shape[1])
        shape = (len(X), len(self.anchors_))
        return csr_array((weights.ravel(), places.ravel(), starts), shape=shape)


def _kmeans_centres(X: FloatArray, count: int, random_state: Any) -> FloatArray:
    """Return the distinct k-means centres of a sample of the records."""
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(1 << 32))
    rng = check_random_state(random_state)
    most = _PER_ANCHOR * count
    some = X if len(X) <= most else X[rng.choice(len(X), most, replace=False)]
    means = KMeans(count, init="random", n_init=1, max_iter=_ROUNDS, random_state=rng)
    with FILTERS, warnings.catch_warnings():
        # Fewer distinct records than centres: the distinct ones are the centres.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.unique(means.fit(some).cluster_centers_, axis=0)


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

    def __init__(self, basis: Basis, shrinkage: FloatArray) -> None:
        self.basis = basis
        self.shrinkage = shrinkage
        self.own_weight = leverages(basis, shrinkage[:, None])

    def coefficients(self, targets: FloatArray) -> FloatArray:
        """Return the coefficients (M, K) of targets (n, K)."""
        products = self.basis.columns.T @ (self.basis.ties.T @ targets)
        return np.asarray(self.shrinkage[:, None] * products)

    def smooth(self, targets: FloatArray) -> FloatArray:
        """Return the fitted values."""
        at_anchors = self.basis.columns @ self.coefficients(targets)
        return np.asarray(self.basis.ties @ at_anchors)

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
        own_weight = np.minimum(full.own_weight / share, 0.5)
        self.own_weight = np.where(mask[:, None], 0, own_weight)

    def smooth(self, targets: FloatArray) -> FloatArray:
        sums = self._ties[self._rest].T @ targets[self._rest]
        coef = cho_solve(self._factor, self._columns.T @ sums)
        return np.asarray(self._ties @ (self._columns @ coef))


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
