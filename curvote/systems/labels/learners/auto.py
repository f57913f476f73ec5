"""Automatic learner: the best of the others, by the likelihood of the codes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from curvote.base.validate import FloatArray
from curvote.systems.labels.learners import smoothing
from curvote.systems.labels.learners.base import Learner, TrainingSet
from curvote.systems.labels.learners.graph import Basis, Spectral, fit_graph
from curvote.systems.labels.learners.knn import KNN, judge_neighbourhoods
from curvote.systems.labels.learners.spectral import (
    RIDGES,
    LikelihoodVotes,
    SpectralVotes,
    anchor_sums,
    best_column_count,
    fold_probabilities,
    judge_ridges,
    judge_settings,
    looser_options,
    step_grid,
)

# Neighbours of every record are looked for where there are no more records.
_NEAR = 1 << 13
# Of n K: maximum likelihood in folds takes ten times as long as all the rest.
_LOGISTIC = 1 << 16


@dataclass(eq=False, repr=False)
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

    spectral: Spectral | None = None

    def _learn(self, data: TrainingSet) -> None:
        """Learn from records (n, d) and their codes (n,)."""
        X, codes, rng, _ = data
        spectral = self.spectral
        if spectral is None:
            spectral = fit_graph(data.every, codes.n_classes)
        if len(X) * codes.n_classes > smoothing.MAX_SWEPT_NUMBERS:
            self._adopt(SpectralVotes(spectral=spectral).fit(X, codes, rng))
            return
        basis, code_targets = (
            Basis.from_graph(spectral, X),
            smoothing.CodeTargets.from_codes(codes),
        )
        folds = smoothing.fold_masks(len(X), rng)
        products = basis.columns.T @ anchor_sums(basis, codes)
        tried = judge_settings(basis, products, code_targets, step_grid(basis.width))
        steps = smoothing.likeliest_trial(tried).params["steps"]
        coarse, options = tried, looser_options(basis, steps)
        families = [smoothing.judge_sweeps(options, code_targets, folds)]
        if len(X) <= _NEAR:
            more, options = judge_neighbourhoods(X, code_targets, codes.epsilon)
            coarse = [*coarse, *more]
            families.append(smoothing.judge_sweeps(options, code_targets, folds))
        if len(X) * codes.n_classes <= _LOGISTIC:
            # Maximum likelihood on as many columns as are best for least squares.
            m = best_column_count(basis, products, code_targets)
            scaled = basis.first_columns(m) * np.sqrt(len(codes))
            likely = code_targets.likely
            votes = fold_probabilities(scaled, likely, folds, RIDGES)
            trials = judge_ridges(votes, likely, {"m": m})
            families.append(
                [max(trials, key=lambda candidate: candidate.trial.likelihood)]
            )
        best = _best_of_families(families)
        learner: Learner
        if best.trial.name == "knn":
            learner = KNN(**best.trial.params)
        elif best.trial.name == "likelihood":
            learner = LikelihoodVotes(**best.trial.params, spectral=spectral)
        else:
            learner = SpectralVotes(**best.trial.params, spectral=spectral)
        self._adopt(learner.fit(X, codes, rng))
        self.tried_ = [trial.to_row() for trial in coarse]
        self.tried_ += [trial.trial.to_row() for family in families for trial in family]
        self._set_left_out(best.left_out)

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes of the learner that was chosen."""
        return self.learner_.votes(X)

    def fixed(self) -> Learner:
        """Return the learner that was chosen, unfitted, its settings stated."""
        learner = self.learner_.fixed()
        if isinstance(learner, SpectralVotes | LikelihoodVotes):
            learner.spectral = self.spectral
        return learner

    def _adopt(self, learner: Learner) -> None:
        self.learner_ = learner
        self.chosen_, self.tried_ = dict(learner.chosen_), learner.tried_
        self._set_left_out(learner.without_own)


def _best_of_families(
    families: Sequence[Sequence[smoothing.FoldTrial]],
) -> smoothing.FoldTrial:
    """Return the first family's choice, unless another's is told to be better."""
    chosen = [smoothing.choose_trial(family) for family in families]
    best = smoothing.simplest_trial([choice.trial for choice in chosen])
    return next(choice for choice in chosen if choice.trial is best)
