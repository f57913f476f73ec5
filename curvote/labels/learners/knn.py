"""The mean of the decoded codes of the nearest records (VEC section 5.1, eq. 31)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from curvote import validate
from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner, LeftOut
from curvote.labels.learners.choice import Tried, judged, likeliest
from curvote.labels.learners.smoothing import (
    Known,
    Mask,
    Smoother,
    Whole,
    masks,
    stages,
)
from curvote.labels.learners.sweeping import Option, after_sweeps, settled, swept
from curvote.validate import FloatArray

Places = NDArray[np.intp]

# Neighbours that sweeps are tried with, beside those that are best without.
_FEWER = (2, 4)


class KNN(Learner):
    """Averages the decoded codes of the ``k`` nearest training records.

    ``sweeps`` times each code is first replaced by its posterior under the votes of its
    own neighbours. With k stated, sweeps is 0 unless stated; with neither, both are
    tuned. k from the number of records on is a UserError.
    """

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
        """Keep the records and their codes; sweeps keep posteriors (n, K) instead."""
        self._check(len(X))
        self.X_, self.codes_, self.tried_ = X, codes, []
        self.posterior_: FloatArray | None = None
        if self.k is not None:
            self.chosen_ = {"k": self.k, "sweeps": self.sweeps or 0}
            self._forget(partial(self._alone, X, codes))
        else:
            self._tune(X, codes, rng)
        if self.chosen_["sweeps"]:
            self._sweep(X, codes, rng)
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the mean over the neighbours."""
        targets = self.codes_.decode() if self.posterior_ is None else self.posterior_
        near = NearestNeighbors(n_neighbors=self.chosen_["k"]).fit(self.X_)
        places = near.kneighbors(X, return_distance=False)
        return np.asarray(_weights(places, len(self.X_)) @ targets)

    def _check(self, n: int) -> None:
        validate.at_least(0, sweeps=self.sweeps or 0)
        if self.k is not None and validate.at_least(1, k=self.k) >= n:
            raise UserError(
                f"k is {self.k}, but X has n_samples = {n}; a record has {n - 1}"
                " neighbours."
            )

    def _alone(self, X: FloatArray, codes: Codes) -> LeftOut:
        near = nearest(X, self.chosen_["k"])
        return LeftOut(np.arange(len(X)), Average(near).smooth(codes.decode()))

    def _tune(self, X: FloatArray, codes: Codes, rng: np.random.Generator) -> None:
        known = Known.of(codes)
        tried, options = neighbourhoods(X, known, codes.epsilon)
        if self.sweeps is None:
            found = swept(options, known, masks(len(X), rng))
            best = settled(found)
            self.chosen_ = dict(best.tried.params)
            tried = [*tried, *(one.tried for one in found)]
            self._forget(best.left_out)
        else:
            self.chosen_ = {**options[0].params, "sweeps": self.sweeps}
            self._forget(partial(self._alone, X, codes))
        self.tried_ = [one.row() for one in tried]

    def _sweep(self, X: FloatArray, codes: Codes, rng: np.random.Generator) -> None:
        known, smoother = Known.of(codes), Average(nearest(X, self.chosen_["k"]))
        made = stages(smoother, known, self.chosen_["sweeps"])
        self.posterior_ = made.targets[-1]
        if self.sweeps is not None:
            seed = int(rng.integers(2**63))
            again = partial(after_sweeps, smoother, known, made.exponents, seed)
            self._forget(again)


class Average(Whole):
    """The mean of the targets of neighbours ``near`` (n, k), never one's own."""

    def __init__(self, near: Places) -> None:
        self._near = near
        self._weights = _weights(near, len(near))
        self.own = np.zeros((len(near), 1))

    def smooth(self, targets: FloatArray) -> FloatArray:
        """Return the mean over each record's neighbours."""
        return np.asarray(self._weights @ targets)

    def without(self, held: Mask) -> Smoother:
        """Return the mean over those neighbours that are not held out."""
        return _Rest(self._weights, held)


class _Rest(Smoother):
    def __init__(self, weights: csr_array, held: Mask) -> None:
        self._weights = weights
        self._there = (~held)[:, None]
        self._share = np.maximum(weights @ self._there.astype(np.float64), 1e-12)
        self.own = np.zeros((len(held), 1))

    def smooth(self, targets: FloatArray) -> FloatArray:
        return np.asarray(self._weights @ (targets * self._there) / self._share)


def nearest(X: FloatArray, k: int) -> Places:
    """Return the places of each record's k nearest others, (n, k), nearest first."""
    near = NearestNeighbors(n_neighbors=k).fit(X)
    return np.asarray(near.kneighbors(return_distance=False))


def grid(n: int, d: int, epsilon: float) -> list[int]:
    """Return numbers of neighbours to try, fewest first.

    From a quarter of eps^(-2d/(d+2)) n^(2/(d+2)) (VEC eq. 36), in powers of two.
    """
    centre = epsilon ** (-2 * d / (d + 2)) * n ** (2 / (d + 2))
    wanted = np.rint(centre * 2.0 ** np.arange(-2, 8)).astype(int)
    return sorted({int(k) for k in wanted.clip(1, max(1, n // 4))})


def neighbourhoods(
    X: FloatArray, known: Known, epsilon: float
) -> tuple[list[Tried], list[Option]]:
    """Judge the grid of k, and return the best and some fewer as options."""
    sizes = grid(len(X), X.shape[1], epsilon)
    near = nearest(X, max(sizes))
    tried = [
        judged(
            "knn", {"k": k}, Average(near[:, :k]).smooth(known.decoded), known.likely
        )
        for k in sizes
    ]
    best = likeliest(tried).params["k"]
    return tried, [_option(near, k) for k in _fewer(best)]


def _fewer(k: int) -> Sequence[int]:
    return [k, *sorted({max(1, k // by) for by in _FEWER} - {k}, reverse=True)]


def _option(near: Places, k: int) -> Option:
    params: dict[str, Any] = {"k": k}
    return Option("knn", params, Average(near[:, :k]))


def _weights(near: Places, n: int) -> csr_array:
    rows, k = near.shape
    share = np.full(near.size, 1 / k)
    starts = np.arange(0, near.size + 1, k)
    return csr_array((share, near.ravel(), starts), shape=(rows, n))
