"""Maximum likelihood of the codes: multinomial logistic with the channel inside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from curvote.base import validate
from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.base import Learner, LeftOutVotes
from curvote.systems.labels.learners.calibration import likeliest_trial, make_trial
from curvote.systems.labels.learners.graph import Basis, Spectral, fit_graph
from curvote.systems.labels.learners.smoothing import CodeTargets, Mask, fold_masks
from curvote.systems.labels.learners.spectral import (
    anchor_sums,
    column_grid,
    judge_settings,
)

COLUMNS = ("graph", "features")
# Strongest first: each fit begins at the one before.
RIDGES = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
_ROUNDS = 60


class LikelihoodVotes(Learner):
    """Multinomial logistic regression of labels that only codes are known of.

    Maximises sum_i log sum_c P(code_i | c) p_c(x_i) - ridge / 2 |coefficients|^2 by
    L-BFGS, for columns of unit mean square; the constant has no penalty.
    ``column_grid`` is "graph" (the first ``m`` of a `Spectral`; None: as many as are
    best for least squares) or "features". ``ridge`` > 0, None: by the likelihood of
    codes in folds. ``anchors``, ``neighbours`` and ``spectral`` as in `SpectralVotes`.
    """

    def __init__(
        self,
        ridge: float | None = None,
        m: int | None = None,
        *,
        columns: str = "graph",
        anchors: int | None = None,
        neighbours: int = 5,
        spectral: Spectral | None = None,
    ) -> None:
        self.ridge = ridge
        self.m = m
        self.columns = columns
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
        """Fit by L-BFGS; holds (n, K) numbers."""
        self._prepare_columns(X, codes, unlabelled)
        basis, likely = self._design_matrix(X), codes.likelihood()
        folds = fold_masks(len(X), rng)
        ridges = [self.ridge] if self.ridge is not None else list(RIDGES)
        fold_votes = partial(fold_probabilities, basis, likely, folds)
        ridge, self.tried_ = ridges[0], []
        if self.ridge is None:
            ridge = self._tune_ridge(fold_votes(RIDGES), likely)
        else:
            validate.positive(ridge=self.ridge)
        self._set_left_out(
            lambda: LeftOutVotes(
                np.arange(len(X)), fold_votes(_ridges_down_to(ridge))[-1]
            )
        )
        self.chosen_["ridge"] = ridge
        self.coef_ = ridge_path(basis, likely, _ridges_down_to(ridge))[-1]
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the probabilities of the classes; rows sum to 1."""
        return np.asarray(softmax(self._design_matrix(X) @ self.coef_, axis=1))

    def fixed(self) -> Learner:
        """Return an unfitted learner with stated settings, on the given graph."""
        learner = super().fixed()
        learner.set_params(spectral=self.spectral)
        return learner

    def _prepare_columns(
        self, X: FloatArray, codes: Codes, unlabelled: FloatArray | None
    ) -> None:
        """Settle the columns: standardised features, or those of a graph."""
        validate.one_of(COLUMNS, columns=self.columns)
        self.chosen_: dict[str, Any] = {}
        if self.columns == "features":
            self.centre_, scale = X.mean(axis=0), X.std(axis=0)
            self.scale_ = np.where(scale > 0, scale, 1)
            return
        self.spectral_ = self._fit_graph(X, codes.n_classes, unlabelled)
        self.chosen_["m"] = self.m or self._best_column_count(X, codes)

    def _fit_graph(
        self, X: FloatArray, n_classes: int, unlabelled: FloatArray | None
    ) -> Spectral:
        if self.spectral is not None:
            return self.spectral
        every = X if unlabelled is None else np.vstack([X, unlabelled])
        anchors, neighbours = self.anchors, self.neighbours
        return fit_graph(every, n_classes, anchors=anchors, neighbours=neighbours)

    def _best_column_count(self, X: FloatArray, codes: Codes) -> int:
        basis = Basis.from_graph(self.spectral_, X)
        products = basis.columns.T @ anchor_sums(basis, codes)
        grid = column_grid(basis.width, len(X))
        tried = judge_settings(basis, products, CodeTargets.from_codes(codes), grid)
        return int(likeliest_trial(tried).params["m"])

    def _design_matrix(self, X: FloatArray) -> FloatArray:
        """Return the columns (n, m) of records; the first is constant."""
        if self.columns == "features":
            scaled = (X - self.centre_) / self.scale_
            return np.column_stack([np.ones(len(X)), scaled])
        first = self.spectral_.components_[:, : self.chosen_["m"]]
        return np.asarray(self.spectral_.ties(X) @ first)

    def _tune_ridge(self, votes: Sequence[FloatArray], likely: FloatArray) -> float:
        tried = [
            make_trial(
                "likelihood", {**self.chosen_, "ridge": ridge}, ridge_votes, likely
            )
            for ridge, ridge_votes in zip(RIDGES, votes, strict=True)
        ]
        self.tried_ = [trial.to_row() for trial in tried]
        return float(likeliest_trial(tried).params["ridge"])


def fold_probabilities(
    basis: FloatArray,
    likely: FloatArray,
    masks: Sequence[Mask],
    ridges: Sequence[float],
) -> list[FloatArray]:
    """Return the probabilities (n, K) under each ridge, by folds without the code."""
    votes = [np.empty_like(likely) for _ in ridges]
    for mask in masks:
        fits = ridge_path(basis[~mask], likely[~mask], ridges)
        for full, coef in zip(votes, fits, strict=True):
            full[mask] = softmax(basis[mask] @ coef, axis=1)
    return votes


def ridge_path(
    basis: FloatArray, likely: FloatArray, ridges: Sequence[float]
) -> list[FloatArray]:
    """Return the coefficients (m, K) under each ridge, each begun at the one before."""
    coef, path = np.zeros((basis.shape[1], likely.shape[1])), []
    for ridge in ridges:
        coef = penalised_maximum(basis, likely, ridge, coef)
        path.append(coef)
    return path


def penalised_maximum(
    basis: FloatArray, likely: FloatArray, ridge: float, start: FloatArray
) -> FloatArray:
    """Return the coefficients (m, K) of largest penalised likelihood near a start."""

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        value, slope = penalised_objective(
            flat.reshape(start.shape), basis, likely, ridge
        )
        return value, slope.ravel()

    options = {"maxiter": _ROUNDS, "ftol": 1e-8}
    result = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(result.x).reshape(start.shape)


def penalised_objective(
    coef: FloatArray, basis: FloatArray, likely: FloatArray, ridge: float
) -> tuple[float, FloatArray]:
    """Return minus the penalised log likelihood a record, and its gradient (m, K)."""
    n = len(basis)
    proba = softmax(basis @ coef, axis=1)
    joint = proba * likely
    mean = joint.sum(axis=1, keepdims=True)
    pull = np.where(np.arange(len(coef)) > 0, ridge, 0)[:, None] * coef
    value = -np.log(mean).sum() + (pull * coef).sum() / 2
    return float(value / n), (basis.T @ (proba - joint / mean) + pull) / n


def _ridges_down_to(ridge: float) -> list[float]:
    return [*(value for value in RIDGES if value > ridge), ridge]
