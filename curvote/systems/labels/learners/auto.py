"""Automatic learner: the best of the others, by the likelihood of the codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.base import Learner
from curvote.systems.labels.learners.calibration import (
    Trial,
    likeliest_trial,
    make_trial,
    simplest_trial,
)
from curvote.systems.labels.learners.graph import Basis, Spectral, fit_graph
from curvote.systems.labels.learners.knn import KNN, judge_neighbourhoods
from curvote.systems.labels.learners.likelihood import (
    RIDGES,
    LikelihoodVotes,
    fold_probabilities,
)
from curvote.systems.labels.learners.smoothing import (
    MAX_SWEPT_NUMBERS,
    CodeTargets,
    FoldTrial,
    Mask,
    choose_trial,
    fold_masks,
    judge_sweeps,
)
from curvote.systems.labels.learners.spectral import (
    SpectralVotes,
    anchor_sums,
    column_grid,
    judge_settings,
    looser_options,
    step_grid,
)

# Neighbours of every record are looked for where there are no more records.
_NEAR = 1 << 13
# Of n K: maximum likelihood in folds takes ten times as long as all the rest.
_LOGISTIC = 1 << 16


class Auto(Learner):
    """Chooses among regressions on a graph's columns, neighbours and logistic models.

    The first two with and without sweeps, their settings by left-out votes; then all by
    the likelihood of the codes in folds. What cannot be told from the likeliest and is
    simpler is taken: no sweep before sweeps, the graph before neighbours before
    `LikelihoodVotes`. Neighbours are tried up to 8,192 records, maximum likelihood up
    to n K of 65,536; above n K of 4 million no sweep is.

    ``spectral``: a fitted `Spectral`, whose graph is then taken as it is.

    Attributes:
        learner_: the learner that was chosen, fitted.
    """

    def __init__(self, spectral: Spectral | None = None) -> None:
        self.spectral = spectral

    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Learn from records (n, d) and their codes (n,)."""
        every = X if unlabelled is None else np.vstack([X, unlabelled])
        fitted_graph = self.spectral
        spectral = (
            fit_graph(every, codes.n_classes) if fitted_graph is None else fitted_graph
        )
        if len(X) * codes.n_classes > MAX_SWEPT_NUMBERS:
            return self._adopt(SpectralVotes(spectral=spectral).fit(X, codes, rng))
        basis, code_targets = (
            Basis.from_graph(spectral, X),
            CodeTargets.from_codes(codes),
        )
        folds = fold_masks(len(X), rng)
        products = basis.columns.T @ anchor_sums(basis, codes)
        tried = judge_settings(basis, products, code_targets, step_grid(basis.width))
        coarse, options = (
            tried,
            looser_options(basis, likeliest_trial(tried).params["steps"]),
        )
        families = [judge_sweeps(options, code_targets, folds)]
        if len(X) <= _NEAR:
            more, options = judge_neighbourhoods(X, code_targets, codes.epsilon)
            coarse = [*coarse, *more]
            families.append(judge_sweeps(options, code_targets, folds))
        if len(X) * codes.n_classes <= _LOGISTIC:
            families.append(_judge_logistic(basis, codes, code_targets, folds))
        best = _best_of_families(families)
        learner = _make_learner(best.trial, spectral).fit(X, codes, rng)
        self._adopt(learner)
        self.tried_ = [trial.to_row() for trial in coarse]
        self.tried_ += [trial.trial.to_row() for family in families for trial in family]
        self._set_left_out(best.left_out)
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes of the learner that was chosen."""
        return self.learner_.votes(X)

    def fixed(self) -> Learner:
        """Return the learner that was chosen, unfitted, its settings stated."""
        learner = self.learner_.fixed()
        if isinstance(learner, SpectralVotes | LikelihoodVotes):
            learner.spectral = self.spectral
        return learner

    def _adopt(self, learner: Learner) -> Self:
        self.learner_ = learner
        self.chosen_, self.tried_ = dict(learner.chosen_), learner.tried_
        self._set_left_out(learner.without_own)
        return self


def _judge_logistic(
    basis: Basis, codes: Codes, code_targets: CodeTargets, masks: Sequence[Mask]
) -> list[FoldTrial]:
    """Judge maximum likelihood under each ridge, and return the likeliest.

    On as many columns as are best for least squares.
    """
    products = basis.columns.T @ anchor_sums(basis, codes)
    grid = column_grid(basis.width, len(codes))
    m = likeliest_trial(judge_settings(basis, products, code_targets, grid)).params["m"]
    scaled = basis.first_columns(m) * np.sqrt(len(codes))
    votes = fold_probabilities(scaled, code_targets.likely, masks, RIDGES)
    trials = [
        FoldTrial(
            make_trial(
                "likelihood", {"m": m, "ridge": ridge}, fold_votes, code_targets.likely
            ),
            fold_votes,
        )
        for ridge, fold_votes in zip(RIDGES, votes, strict=True)
    ]
    return [max(trials, key=lambda candidate: candidate.trial.likelihood)]


def _best_of_families(families: Sequence[Sequence[FoldTrial]]) -> FoldTrial:
    """Return the first family's choice, unless another's is told to be better."""
    chosen = [choose_trial(family) for family in families]
    best = simplest_trial([trial.trial for trial in chosen])
    return next(trial for trial in chosen if trial.trial is best)


def _make_learner(tried: Trial, spectral: Spectral) -> Learner:
    if tried.name == "knn":
        return KNN(**tried.params)
    if tried.name == "likelihood":
        return LikelihoodVotes(**tried.params, spectral=spectral)
    return SpectralVotes(**tried.params, spectral=spectral)
