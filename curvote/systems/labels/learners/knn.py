"""Votes of decoded codes: nearest neighbours (VEC section 5.1, eq. 31) and ridge."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners import smoothing
from curvote.systems.labels.learners.base import Learner, LeftOutVotes, TrainingSet

Places = NDArray[np.intp]

# Neighbours that sweeps are tried with, beside those that are best without.
_FEWER = (2, 4)


@dataclass(eq=False, repr=False)
class KNN(Learner):
    """Averages the decoded codes of the ``k`` nearest training records.

    ``sweeps`` times each code is first replaced by its posterior under the votes of its
    own neighbours. With k stated, sweeps is 0 unless stated; with neither, both are
    tuned. k from the number of records on is a UserError.
    """

    k: int | None = None
    sweeps: int | None = None

    def _learn(self, data: TrainingSet) -> None:
        """Fit by keeping records and codes; sweeps keep posteriors (n, K) instead."""
        X, codes, rng, _ = data
        validate.at_least(0, sweeps=self.sweeps or 0)
        if self.k is not None and validate.at_least(1, k=self.k) >= len(X):
            raise UserError(
                f"k is {self.k}, but X has n_samples = {len(X)}; a record has"
                f" {len(X) - 1} neighbours."
            )
        self.X_, self.codes_ = X, codes
        self.posterior_: FloatArray | None = None
        if self.k is not None:
            self.chosen_ = {"k": self.k, "sweeps": self.sweeps or 0}
            self._set_left_out(partial(self._leave_one_out, X, codes))
        else:
            code_targets = smoothing.CodeTargets.from_codes(codes)
            tried, options = judge_neighbourhoods(X, code_targets, codes.epsilon)
            if self.sweeps is None:
                folds = smoothing.fold_masks(len(X), rng)
                trials = smoothing.judge_sweeps(options, code_targets, folds)
                best = smoothing.choose_trial(trials)
                self.chosen_ = dict(best.trial.params)
                tried = [*tried, *(trial.trial for trial in trials)]
                self._set_left_out(best.left_out)
            else:
                self.chosen_ = {**options[0].params, "sweeps": self.sweeps}
                self._set_left_out(partial(self._leave_one_out, X, codes))
            self.tried_ = [trial.to_row() for trial in tried]
        if self.chosen_["sweeps"]:
            smoother = NeighbourMean(nearest_neighbours(X, self.chosen_["k"]))
            self.posterior_, left_out = smoothing.sweep_codes(
                smoother, codes, self.chosen_["sweeps"]
            )
            if self.sweeps is not None:
                self._set_left_out(partial(left_out, int(rng.integers(2**63))))

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the mean over the neighbours."""
        targets = self.codes_.decode() if self.posterior_ is None else self.posterior_
        near = NearestNeighbors(n_neighbors=self.chosen_["k"]).fit(self.X_)
        places = near.kneighbors(X, return_distance=False)
        return np.asarray(_neighbour_weights(places, len(self.X_)) @ targets)

    def _leave_one_out(self, X: FloatArray, codes: Codes) -> LeftOutVotes:
        near = nearest_neighbours(X, self.chosen_["k"])
        votes = NeighbourMean(near).smooth(codes.decode())
        return LeftOutVotes(np.arange(len(X)), votes)


class NeighbourMean(smoothing.FullSmoother):
    """Mean of the targets of neighbours ``near`` (n, k), never one's own."""

    def __init__(self, near: Places) -> None:
        self._near = near
        self._weights = _neighbour_weights(near, len(near))
        self.own_weight = np.zeros((len(near), 1))

    def smooth(self, targets: FloatArray) -> FloatArray:
        """Return the mean over each record's neighbours."""
        return np.asarray(self._weights @ targets)

    def without(self, mask: smoothing.Mask) -> smoothing.Smoother:
        """Return the mean over those neighbours that are not held out."""
        return _PartialMean(self._weights, mask)


class _PartialMean(smoothing.Smoother):
    def __init__(self, weights: csr_array, mask: smoothing.Mask) -> None:
        self._weights = weights
        self._used = (~mask)[:, None]
        self._share = np.maximum(weights @ self._used.astype(np.float64), 1e-12)
        self.own_weight = np.zeros((len(mask), 1))

    def smooth(self, targets: FloatArray) -> FloatArray:
        return np.asarray(self._weights @ (targets * self._used) / self._share)


def nearest_neighbours(X: FloatArray, k: int) -> Places:
    """Return the places of each record's k nearest others, (n, k), nearest first."""
    near = NearestNeighbors(n_neighbors=k).fit(X)
    return np.asarray(near.kneighbors(return_distance=False))


def neighbour_grid(n: int, d: int, epsilon: float) -> list[int]:
    """Return numbers of neighbours to try, fewest first.

    From a quarter of eps^(-2d/(d+2)) n^(2/(d+2)) (VEC eq. 36), in powers of two.
    """
    centre = epsilon ** (-2 * d / (d + 2)) * n ** (2 / (d + 2))
    sizes = np.rint(centre * 2.0 ** np.arange(-2, 8)).astype(int)
    return sorted({int(k) for k in sizes.clip(1, max(1, n // 4))})


def judge_neighbourhoods(
    X: FloatArray, code_targets: smoothing.CodeTargets, epsilon: float
) -> tuple[list[smoothing.Trial], list[smoothing.SweepOption]]:
    """Judge the grid of k, and return the best and some fewer as options."""
    sizes = neighbour_grid(len(X), X.shape[1], epsilon)
    near = nearest_neighbours(X, max(sizes))
    decoded, likely = code_targets
    votes = ((k, NeighbourMean(near[:, :k]).smooth(decoded)) for k in sizes)
    tried = [smoothing.make_trial("knn", {"k": k}, v, likely) for k, v in votes]
    best = smoothing.likeliest_trial(tried).params["k"]
    fewer = sorted({max(1, best // by) for by in _FEWER} - {best}, reverse=True)
    return tried, [
        smoothing.SweepOption("knn", {"k": k}, NeighbourMean(near[:, :k]))
        for k in [best, *fewer]
    ]


def _neighbour_weights(near: Places, n: int) -> csr_array:
    rows, k = near.shape
    share = np.full(near.size, 1 / k)
    starts = np.arange(0, near.size + 1, k)
    return csr_array((share, near.ravel(), starts), shape=(rows, n))


def scales(X: FloatArray) -> FloatArray:
    """Return the standard deviations of features (n, d), 1 for a constant one, (d,)."""
    deviations = X.std(axis=0)
    return np.where(deviations > 0, deviations, 1)


# Of alpha, times the mean square of the features' principal directions.
_GRID = 10.0 ** np.arange(-6, 3)


@dataclass(eq=False, repr=False)
class RidgeVotes(Learner):
    """Ridge regression with an intercept; ``alpha`` > 0 as scikit-learn's Ridge.

    ``standardise``: on features of variance 1.
    """

    alpha: float | None = None
    standardise: bool = False

    def _learn(self, data: TrainingSet) -> None:
        """Fit in principal directions; with alpha None try nine."""
        X, codes, rng, _ = data
        self.centre_ = X.mean(axis=0)
        units = scales(X) if self.standardise else np.ones(X.shape[1])
        centred = (X - self.centre_) / units
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
        alpha = self.alpha
        if alpha is None:
            decoded, likely = smoothing.CodeTargets.from_codes(judges)
            scale, tried = float(self.squares_.mean()) or 1.0, []
            for value in (float(share * scale) for share in _GRID):
                votes = self._left_out_votes(turned, decoded, value, len(X))
                params = {"alpha": value}
                tried.append(smoothing.make_trial("ridge", params, votes, likely))
            self.tried_ = [trial.to_row() for trial in tried]
            alpha = float(smoothing.likeliest_trial(tried).params["alpha"])
        self.chosen_ = {"alpha": validate.positive(alpha=alpha)}
        votes_of = partial(self._left_out_votes, turned, alpha=alpha, n=len(X))
        self._set_left_out(lambda: LeftOutVotes(rows, votes_of(judges.decode())))
        shrunk = self.products_ / (self.squares_ + alpha)[:, None]
        self.coef_ = self.directions_ @ shrunk / units[:, None]

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the regression at the records."""
        return np.asarray((X - self.centre_) @ self.coef_ + self.mean_)

    def _left_out_votes(
        self, turned: FloatArray, decoded: FloatArray, alpha: float, n: int
    ) -> FloatArray:
        """Return the votes without each record's own code, by its leverage."""
        shrunk = turned / (self.squares_ + alpha)
        leverage = (np.einsum("nd,nd->n", shrunk, turned) + 1 / n)[:, None]
        fitted = shrunk @ self.products_ + self.mean_
        return np.asarray((fitted - leverage * decoded) / (1 - leverage))
