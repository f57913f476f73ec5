"""Choice of sweeps: smoothers with and without them, judged in folds of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curvote.labels.learners.base import LeftOutVotes
from curvote.labels.learners.choice import (
    Trial,
    likeliest_trial,
    make_trial,
    simplest_trial,
)
from curvote.labels.learners.smoothing import (
    CodeTargets,
    FullSmoother,
    Mask,
    fold_masks,
    folded_votes,
    run_sweeps,
)
from curvote.validate import FloatArray

MAX_SWEEPS = 2
# Sweeps are tried where the codes have at most so many numbers, n K.
MAX_SWEPT_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class SweepOption:
    """A smoother that sweeps may improve, under the settings that make it."""

    name: str
    params: Mapping[str, Any]
    smoother: FullSmoother


@dataclass(frozen=True, eq=False)
class FoldTrial:
    """A trial, and the fold votes (n, K) that it was judged by."""

    trial: Trial
    votes: FloatArray

    def left_out(self) -> LeftOutVotes:
        """Return the votes as a learner's left-out votes."""
        return LeftOutVotes(np.arange(len(self.votes)), self.votes)


def judge_sweeps(
    options: Sequence[SweepOption], code_targets: CodeTargets, folds: Sequence[Mask]
) -> list[FoldTrial]:
    """Judge the first option as it is, and every one after 1 to 2 sweeps.

    Options smooth less and less: sweeps gain with little smoothing.
    """
    trials = []
    for place, option in enumerate(options):
        history = run_sweeps(option.smoother, code_targets, MAX_SWEEPS)
        votes = folded_votes(option.smoother, code_targets, history.exponents, folds)
        for sweeps in range(min(1, place), MAX_SWEEPS + 1):
            params = {**option.params, "sweeps": sweeps}
            trial = make_trial(option.name, params, votes[sweeps], code_targets.likely)
            trials.append(FoldTrial(trial, votes[sweeps]))
    return trials


def choose_trial(trials: Sequence[FoldTrial]) -> FoldTrial:
    """Return the first trial, or the likeliest other if that is told to be better.

    The first, if it cannot be told from the likeliest.
    """
    first, *rest = (fold_trial.trial for fold_trial in trials)
    best = simplest_trial([first, likeliest_trial(rest)]) if rest else first
    return next(fold_trial for fold_trial in trials if fold_trial.trial is best)


def votes_after_sweeps(
    smoother: FullSmoother,
    code_targets: CodeTargets,
    exponents: Sequence[int],
    seed: int,
) -> LeftOutVotes:
    """Return the votes after sweeps by folds that never saw the codes."""
    n = len(code_targets.decoded)
    folds = fold_masks(n, np.random.default_rng(seed))
    return LeftOutVotes(
        np.arange(n), folded_votes(smoother, code_targets, exponents, folds)[-1]
    )
