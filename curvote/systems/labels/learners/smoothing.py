"""Linear smoothers of codes, sweeps over them, and votes that do not know a code.

A sweep replaces each decoded code by its posterior under the votes of the others, and
smooths again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners import calibration
from curvote.systems.labels.learners.base import LeftOutVotes
from curvote.systems.labels.learners.calibration import (
    Trial,
    likeliest_trial,
    make_trial,
    simplest_trial,
)

Mask = NDArray[np.bool_]
FOLDS = 5


class Smoother(ABC):
    """Makes votes of targets, both (n, K): linear, from features alone.

    ``own_weight`` (n, 1) is what a record's own target weighs in its vote.
    """

    own_weight: FloatArray

    @abstractmethod
    def smooth(self, targets: FloatArray) -> FloatArray:
        """Return the votes (n, K) of targets (n, K)."""

    def left_out(self, targets: FloatArray) -> FloatArray:
        """Return the vote for each record by all others, (n, K)."""
        votes = self.smooth(targets)
        return np.asarray((votes - self.own_weight * targets) / (1 - self.own_weight))


class FullSmoother(Smoother):
    """A smoother that learns from all records, and can do without some."""

    @abstractmethod
    def without(self, mask: Mask) -> Smoother:
        """Return the smoother that learns nothing of the targets of masked records."""


class CodeTargets(NamedTuple):
    """Decoded codes and their likelihood, (n, K) each: what smoothers learn from."""

    decoded: FloatArray
    likely: FloatArray

    @classmethod
    def from_codes(cls, codes: Codes) -> CodeTargets:
        """Return the targets of some codes."""
        return cls(codes.decode(), codes.likelihood())


class SweepHistory(NamedTuple):
    """Votes after 0, 1, ... sweeps: targets, left-out votes (n, K) and exponents."""

    targets: list[FloatArray]
    votes: list[FloatArray]
    exponents: list[int]


def run_sweeps(
    smoother: Smoother,
    code_targets: CodeTargets,
    sweeps: int,
    exponents: Sequence[int] = (),
) -> SweepHistory:
    """Return the history of ``sweeps``; exponents that are not given are chosen."""
    history = SweepHistory([code_targets.decoded], [], [])
    for stage in range(sweeps + 1):
        votes = smoother.left_out(history.targets[-1])
        history.votes.append(votes)
        if stage == sweeps:
            break
        fixed_exponent = exponents[stage] if stage < len(exponents) else None
        power = (
            fixed_exponent or calibration.best_exponent(votes, code_targets.likely)[0]
        )
        proba = calibration.probabilities(votes, power)
        history.exponents.append(power)
        history.targets.append(calibration.posterior(proba, code_targets.likely))
    return history


def fold_masks(n: int, rng: np.random.Generator) -> list[Mask]:
    """Return the mask of records that each fold holds out, (n,); each record once."""
    place = rng.permutation(n) % FOLDS
    return [place == fold for fold in range(min(FOLDS, n))]


def folded_votes(
    smoother: FullSmoother,
    code_targets: CodeTargets,
    exponents: Sequence[int],
    folds: Sequence[Mask],
) -> list[FloatArray]:
    """Return the votes (n, K) after each sweep by folds that never saw the code.

    Without a record's own target a vote after a sweep still knows its code: the others'
    posteriors do. Here they are made of other folds' codes.
    """
    votes = [np.empty_like(code_targets.decoded) for _ in range(len(exponents) + 1)]
    for mask in folds:
        history = run_sweeps(
            smoother.without(mask), code_targets, len(exponents), exponents
        )
        for full, part in zip(votes, history.votes, strict=True):
            full[mask] = part[mask]
    return votes


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
