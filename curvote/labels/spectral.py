"""Neighbour graph of public features: its eigenvectors, and regressions on them.

Records are tied to anchors, so that time is linear in their number and a new record
needs its anchors only (anchor graphs: Liu, He and Chang 2010).
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
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
from sklearn.utils.validation import check_is_fitted, validate_data

from curvote import validate
from curvote.errors import UserError
from curvote.random_state import check_random_state as checked
from curvote.representation.functional import refuse_curves
from curvote.validate import FloatArray
from curvote.warned import FILTERS

# Anchors are the means of at most so many records each: more move them no further.
_PER_ANCHOR = 25
_ROUNDS = 10
# Eigenvalues below it are those of a graph of lower rank, up to rounding.
_RANK = 1e-10


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

    def __init__(
        self,
        m: int = 20,
        anchors: int = 2000,
        neighbours: int = 5,
        random_state: Any = None,
    ) -> None:
        self.m = m
        self.anchors = anchors
        self.neighbours = neighbours
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Learn the graph of the records X, (n, d)."""
        refuse_curves(X)
        records: FloatArray = validate_data(
            self, X, dtype=np.float64, ensure_min_samples=2
        )
        self._check_parameters(len(records))
        self.anchors_ = _kmeans_centres(records, self.anchors, self.random_state)
        tied = self._anchor_weights(records)
        sizes = tied.sum(axis=0)
        # An anchor that no record is near has no part in the graph.
        scale = np.divide(1, np.sqrt(sizes), out=np.zeros_like(sizes), where=sizes > 0)
        graph = (tied.T @ tied).toarray() * scale[:, None] * scale
        self.eigenvalues_, vectors = _largest_eigenpairs(
            graph, min(self.m, self._anchor_count())
        )
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
        refuse_curves(X)
        return self._anchor_weights(
            validate_data(self, X, dtype=np.float64, reset=False)
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[1])

    def _anchor_count(self) -> int:
        return len(self.anchors_)

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
        near = NearestNeighbors(n_neighbors=min(self.neighbours, self._anchor_count()))
        distances, places = near.fit(self.anchors_).kneighbors(X)
        last = np.maximum(distances[:, -1:], np.finfo(np.float64).tiny)
        weights = np.exp(-2 * (distances / last) ** 2)
        weights /= weights.sum(axis=1, keepdims=True)
        starts = np.arange(0, places.size + 1, places.shape[1])
        shape = (len(X), self._anchor_count())
        return csr_array((weights.ravel(), places.ravel(), starts), shape=shape)


def _kmeans_centres(X: FloatArray, count: int, random_state: Any) -> FloatArray:
    """Return the distinct k-means centres of a sample of the records."""
    rng = check_random_state(_kmeans_random_state(random_state))
    most = _PER_ANCHOR * count
    some = X if len(X) <= most else X[rng.choice(len(X), most, replace=False)]
    means = KMeans(count, init="random", n_init=1, max_iter=_ROUNDS, random_state=rng)
    with FILTERS, warnings.catch_warnings():
        # Fewer distinct records than centres: the distinct ones are the centres.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.unique(means.fit(some).cluster_centers_, axis=0)


def _kmeans_random_state(random_state: Any) -> Any:
    """Return the random state for k-means: for a Generator, a seed drawn from it."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 32))
    return random_state


def _largest_eigenpairs(graph: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues above 0, decreasing, and their vectors."""
    last = len(graph) - 1
    values, vectors = eigh(graph, subset_by_index=[last - count + 1, last])
    positive = values > _RANK
    values, vectors = values[positive][::-1], vectors[:, positive][:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.sign(vectors[largest, np.arange(len(values))])
