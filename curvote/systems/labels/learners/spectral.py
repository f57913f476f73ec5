"""Regression of the codes on the eigenvectors of the features' graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from curvote.base import validate
from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners import graph, smoothing
from curvote.systems.labels.learners.base import Learner, LeftOutVotes, TrainingSet
from curvote.systems.labels.learners.knn import scales

Setting = tuple[int, float]

_STEPS = 2.0 ** np.arange(-1, 7)
_COLUMNS = np.rint(2 ** (np.arange(2, 40) / 2)).astype(int)


@dataclass(eq=False, repr=False)
class SpectralVotes(Learner):
    """Regression of the decoded codes on columns of a `Spectral`.

    ``m`` are the first columns; ``steps`` >= 0 shrinks each by eigenvalue^steps, 0 is
    least squares. With m stated, steps is 0 unless stated; with neither, the likelihood
    of the codes chooses among numbers of columns and, with all columns, steps.
    ``sweeps`` times the codes are replaced by their posteriors under the votes.
    ``anchors`` None: 2,000, or a third of the records if these are fewer than 6,000.
    ``spectral``: a fitted `Spectral`, whose graph is then taken as it is.

    Codes are read in blocks; sweeps hold (n, K) numbers.
    """

    m: int | None = None
    anchors: int | None = None
    neighbours: int = 5
    _: KW_ONLY
    steps: float | None = None
    sweeps: int = 0
    spectral: graph.Spectral | None = None

    def _learn(self, data: TrainingSet) -> None:
        """Learn; more anchors, columns or neighbours than there can be: UserError."""
        X, codes, rng, _ = data
        validate.at_least(0, sweeps=self.sweeps)
        if self.steps:
            validate.positive(steps=self.steps)
        columns = None if self.steps else self.m
        self.spectral_ = learn_graph(self, data, columns)
        basis = graph.Basis.from_graph(self.spectral_, X)
        rows = smoothing.sample_rows(len(X), max(basis.width, codes.n_classes), rng)
        products = basis.columns.T @ anchor_sums(basis, codes)
        part, judges, width = basis.take(rows), codes[rows], basis.width
        if self.m is not None or self.steps is not None:
            m, steps = min(self.m or width, width), self.steps or 0.0
        else:
            grid = [*column_grid(width, len(judges)), *step_grid(width)]
            code_targets = smoothing.CodeTargets.from_codes(judges)
            tried = judge_settings(part, products, code_targets, grid)
            self.tried_ = [trial.to_row() for trial in tried]
            best = smoothing.likeliest_trial(tried).params
            m, steps = best["m"], best["steps"]
        self.chosen_ = {"m": m, "steps": steps, "sweeps": self.sweeps}
        shrinkage = basis.shrinkage(m, steps)
        if self.sweeps:
            smoother = graph.BasisRegression(basis, shrinkage)
            targets, left_out = smoothing.sweep_codes(smoother, codes, self.sweeps)
            self.at_anchors_ = basis.columns @ smoother.coefficients(targets)
            self._set_left_out(partial(left_out, int(rng.integers(2**63))))
            return
        self.at_anchors_ = basis.columns @ (shrinkage[:, None] * products)
        arguments = part, shrinkage, products, judges, rows
        self._set_left_out(partial(_left_out_votes, *arguments))

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes of the records' anchors, weighted."""
        return np.asarray(self.spectral_.ties(X) @ self.at_anchors_)


def learn_graph(
    learner: SpectralVotes | LikelihoodVotes, data: TrainingSet, m: int | None = None
) -> graph.Spectral:
    """Return the learner's given graph, or one of all public records.

    Settings out of range are UserErrors.
    """
    for name in ("m", "anchors"):
        if getattr(learner, name) is not None:
            validate.at_least(1, **{name: getattr(learner, name)})
    if learner.spectral is not None:
        return learner.spectral
    every, k = data.every, data.codes.n_classes
    anchors, neighbours = learner.anchors, learner.neighbours
    return graph.fit_graph(every, k, m=m, anchors=anchors, neighbours=neighbours)


def looser_options(basis: graph.Basis, steps: float) -> list[smoothing.SweepOption]:
    """Return all columns with these steps, a half and a quarter of them."""
    options = []
    for fewer in (steps, steps / 2, steps / 4):
        params: dict[str, Any] = {"m": basis.width, "steps": fewer}
        smoother = graph.BasisRegression(basis, basis.shrinkage(basis.width, fewer))
        options.append(smoothing.SweepOption("spectral", params, smoother))
    return options


def column_grid(width: int, n: int) -> list[Setting]:
    """Return numbers of columns to try, fewest first, without shrinking."""
    counts = [int(m) for m in _COLUMNS if m <= min(width, n // 4)]
    return [(m, 0.0) for m in counts or [1]]


def step_grid(width: int) -> list[Setting]:
    """Return all columns with fewer and fewer steps."""
    return [(width, float(steps)) for steps in _STEPS[::-1]]


def anchor_sums(basis: graph.Basis, codes: Codes) -> FloatArray:
    """Return the decoded codes summed at the anchors, (anchors, K), in blocks."""
    total = np.zeros((basis.ties.shape[1], codes.n_classes))
    for rows, part in codes.blocks():
        total += basis.ties[rows].T @ part.decode()
    return total


def _left_out_votes(
    basis: graph.Basis,
    shrinkage: FloatArray,
    products: FloatArray,
    codes: Codes,
    rows: NDArray[np.intp],
) -> LeftOutVotes:
    """Return the votes for the basis' records (r,) without their own codes.

    ``products`` (M, K) are of all records.
    """
    leverage = graph.leverages(basis, shrinkage[:, None])
    votes = basis.ties @ (basis.columns @ (shrinkage[:, None] * products))
    return LeftOutVotes(rows, (votes - leverage * codes.decode()) / (1 - leverage))


def judge_settings(
    basis: graph.Basis,
    products: FloatArray,
    code_targets: smoothing.CodeTargets,
    grid: Sequence[Setting],
) -> list[smoothing.Trial]:
    """Judge each setting by left-out votes for the basis' records, and return all."""
    shrinkage = np.stack([basis.shrinkage(*setting) for setting in grid], axis=1)
    all_leverages = graph.leverages(basis, shrinkage)
    tried = []
    for place, (m, steps) in enumerate(grid):
        leverage = all_leverages[:, place, None]
        votes = basis.ties @ (basis.columns @ (shrinkage[:, place, None] * products))
        votes = (votes - leverage * code_targets.decoded) / (1 - leverage)
        params: dict[str, Any] = {"m": m, "steps": steps}
        trial = smoothing.make_trial("spectral", params, votes, code_targets.likely)
        tried.append(trial)
    return tried


COLUMNS = ("graph", "features")
# Strongest first: each fit begins at the one before. Four do as well as eight on the
# even seeds of benchmarks/court.
RIDGES = (300.0, 100.0, 10.0, 1.0)
_ROUNDS = 60


@dataclass(eq=False, repr=False)
class LikelihoodVotes(Learner):
    """Multinomial logistic regression of labels that only codes are known of.

    Maximises sum_i log sum_c P(code_i | c) p_c(x_i) - ridge / 2 |coefficients|^2 by
    L-BFGS, for columns of unit mean square. The constant is penalised, too: without
    that, noise can leave a class no share, and no gradient leads back from there.
    ``column_grid`` is "graph" (the first ``m`` of a `Spectral`; None: as many as are
    best for least squares) or "features". ``ridge`` > 0, None: by the likelihood of
    codes in folds. ``anchors``, ``neighbours`` and ``spectral`` as in `SpectralVotes`.
    """

    ridge: float | None = None
    m: int | None = None
    _: KW_ONLY
    columns: str = "graph"
    anchors: int | None = None
    neighbours: int = 5
    spectral: graph.Spectral | None = None

    def _learn(self, data: TrainingSet) -> None:
        """Fit by L-BFGS; holds (n, K) numbers."""
        X, codes, rng, _ = data
        validate.one_of(COLUMNS, columns=self.columns)
        if self.columns == "features":
            self.centre_, self.scale_ = X.mean(axis=0), scales(X)
        else:
            self.spectral_ = learn_graph(self, data)
            m = self.m
            if not m:
                graph_basis = graph.Basis.from_graph(self.spectral_, X)
                products = graph_basis.columns.T @ anchor_sums(graph_basis, codes)
                code_targets = smoothing.CodeTargets.from_codes(codes)
                m = best_column_count(graph_basis, products, code_targets)
            self.chosen_["m"] = m
        basis, likely = self._design_matrix(X), codes.likelihood()
        folds = smoothing.fold_masks(len(X), rng)
        fold_votes = partial(fold_probabilities, basis, likely, folds)
        if self.ridge is None:
            fold_trials = judge_ridges(fold_votes(RIDGES), likely, self.chosen_)
            trials = [fold_trial.trial for fold_trial in fold_trials]
            self.tried_ = [trial.to_row() for trial in trials]
            ridge = float(smoothing.likeliest_trial(trials).params["ridge"])
        else:
            validate.positive(ridge=self.ridge)
            ridge = self.ridge
        path = [*(value for value in RIDGES if value > ridge), ridge]
        every = np.arange(len(X))
        self._set_left_out(lambda: LeftOutVotes(every, fold_votes(path)[-1]))
        self.chosen_["ridge"] = ridge
        self.coef_ = ridge_path(basis, likely, path)[-1]

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the probabilities of the classes; rows sum to 1."""
        return np.asarray(softmax(self._design_matrix(X) @ self.coef_, axis=1))

    def _design_matrix(self, X: FloatArray) -> FloatArray:
        """Return the columns (n, m) of records; the first is constant."""
        if self.columns == "features":
            return standardised_columns(X, self.centre_, self.scale_)
        first = self.spectral_.components_[:, : self.chosen_["m"]]
        return np.asarray(self.spectral_.ties(X) @ first)


def standardised_columns(
    X: FloatArray, centre: FloatArray, scale: FloatArray
) -> FloatArray:
    """Return a constant column and the features less ``centre`` in ``scale``s."""
    return np.column_stack([np.ones(len(X)), (X - centre) / scale])


def best_column_count(
    basis: graph.Basis, products: FloatArray, code_targets: smoothing.CodeTargets
) -> int:
    """Return how many columns are best for least squares."""
    grid = column_grid(basis.width, len(code_targets.decoded))
    tried = judge_settings(basis, products, code_targets, grid)
    return int(smoothing.likeliest_trial(tried).params["m"])


def judge_ridges(
    votes: Sequence[FloatArray], likely: FloatArray, params: Mapping[str, Any]
) -> list[smoothing.FoldTrial]:
    """Return the trials of ``RIDGES`` by the folds' votes (n, K) under each."""
    trials = []
    for ridge, fold_votes in zip(RIDGES, votes, strict=True):
        setting = {**params, "ridge": ridge}
        trial = smoothing.make_trial("likelihood", setting, fold_votes, likely)
        trials.append(smoothing.FoldTrial(trial, fold_votes))
    return trials


def fold_probabilities(
    basis: FloatArray,
    likely: FloatArray,
    masks: Sequence[smoothing.Mask],
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
    options = {"maxiter": _ROUNDS, "ftol": 1e-8}

    def loss(flat: FloatArray, ridge: float) -> tuple[float, FloatArray]:
        at = flat.reshape(coef.shape)
        value, slope = penalised_objective(at, basis, likely, ridge)
        return value, slope.ravel()

    for ridge in ridges:
        result = minimize(
            loss, coef.ravel(), (ridge,), "L-BFGS-B", jac=True, options=options
        )
        coef = np.asarray(result.x).reshape(coef.shape)
        path.append(coef)
    return path


def penalised_objective(
    coef: FloatArray, basis: FloatArray, likely: FloatArray, ridge: float
) -> tuple[float, FloatArray]:
    """Return minus the penalised log likelihood a record, and its gradient (m, K)."""
    n = len(basis)
    proba = softmax(basis @ coef, axis=1)
    joint = proba * likely
    mean = joint.sum(axis=1, keepdims=True)
    value = -np.log(mean).sum() + ridge * (coef**2).sum() / 2
    return float(value / n), (basis.T @ (proba - joint / mean) + ridge * coef) / n
