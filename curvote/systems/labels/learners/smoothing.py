"""Linear smoothers of codes, sweeps over them, and votes that do not know a code.

A sweep replaces each decoded code by its posterior under the votes of the others, and
smooths again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.base import LeftOutVotes

EXPONENTS = range(1, 9)
# What the votes leave to all classes alike: no class of a record is impossible.
_FLOOR = 1e-3


def to_simplex(votes: FloatArray) -> FloatArray:
    """Return votes (n, K) scaled to sum to 1 in each row; negative ones are 0.

    A row without a positive vote is uniform.
    """
    positive = np.clip(votes, 0, None)
    sums = positive.sum(axis=1, keepdims=True)
    even = np.full_like(positive, 1 / votes.shape[1])
    return np.asarray(np.divide(positive, sums, out=even, where=sums > 0))


def probabilities(votes: FloatArray, exponent: float) -> FloatArray:
    """Return calibrated probabilities (n, K) of votes (n, K); rows sum to 1.

    They order the classes as the votes do, but for votes below 0, which are equal.
    """
    shares = to_simplex(votes)
    shares /= shares.max(axis=1, keepdims=True)
    return _floor_and_normalise(shares**exponent)


def best_exponent(votes: FloatArray, likely: FloatArray) -> tuple[int, FloatArray]:
    """Return the likeliest exponent of 1 to 8, and log likelihoods of codes, (n,).

    ``likely`` (n, K) are the codes' `likelihood`; ``votes`` (n, K) must not know the
    codes of their own records: left-out votes, or those for records that took no part
    in learning.
    """
    shares = to_simplex(votes)
    shares /= shares.max(axis=1, keepdims=True)
    sharp, tried = np.ones_like(shares), []
    for power in EXPONENTS:
        sharp = sharp * shares
        tried.append((power, log_likelihood(_floor_and_normalise(sharp), likely)))
    return max(tried, key=lambda trial: float(np.mean(trial[1])))


def log_likelihood(proba: FloatArray, likely: FloatArray) -> FloatArray:
    """Return log sum_c P(code | c) p_c of each record, (n,), of (n, K) each.

    P(code | c) has a factor of each row's own: compare the same codes only.
    """
    return np.asarray(np.log(np.einsum("nk,nk->n", proba, likely)))


def posterior(proba: FloatArray, likely: FloatArray) -> FloatArray:
    """Return the posterior P(class | x, code), (n, K), of (n, K) each."""
    joint = proba * likely
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _floor_and_normalise(sharp: FloatArray) -> FloatArray:
    scale = (1 - _FLOOR) / sharp.sum(axis=1, keepdims=True)
    return np.asarray(sharp * scale + _FLOOR / sharp.shape[1])


# Of each array that judging makes; where more records are, a sample is judged.
_NUMBERS = 1 << 23


@dataclass(frozen=True, eq=False)
class Trial:
    """One setting of one learner, with log likelihoods ``scores`` (r,) of codes."""

    name: str
    params: Mapping[str, Any]
    exponent: int
    scores: FloatArray = field(repr=False)

    @property
    def likelihood(self) -> float:
        """Return the mean log likelihood of the codes, up to a constant of theirs."""
        return float(self.scores.mean())

    def to_row(self) -> dict[str, Any]:
        """Return the trial as a row of a table."""
        se = float(self.scores.std() / np.sqrt(len(self.scores)))
        return {
            "name": self.name,
            "params": dict(self.params),
            "exponent": self.exponent,
            "likelihood": self.likelihood,
            "se": se,
        }


def make_trial(
    name: str, params: Mapping[str, Any], votes: FloatArray, likely: FloatArray
) -> Trial:
    """Return the trial of votes (r, K) that do not know their codes."""
    return Trial(name, params, *best_exponent(votes, likely))


def likeliest_trial(trials: Iterable[Trial]) -> Trial:
    """Return the trial that makes the codes likeliest; of equals the first."""
    return max(trials, key=lambda trial: trial.likelihood)


def simplest_trial(trials: Sequence[Trial]) -> Trial:
    """Return the first trial that cannot be told from the likeliest.

    It is behind by no more than the standard error of the difference.
    """
    best = likeliest_trial(trials)
    for trial in trials:
        lost = best.scores - trial.scores
        if not lost.mean() > lost.std() / np.sqrt(len(lost)):
            return trial
    return best


def sample_rows(n: int, width: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the records (r,) by which settings are judged: all, or a sample.

    ``width`` is how many numbers judging holds of each record.
    """
    most = max(1, _NUMBERS // width)
    if n <= most:
        return np.arange(n)
    return np.sort(rng.choice(n, most, replace=False))


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


# Votes after 0, 1, ... sweeps: lists of targets, left-out votes (n, K) and exponents.
SweepHistory = namedtuple("SweepHistory", "targets votes exponents")


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
        power = fixed_exponent or best_exponent(votes, code_targets.likely)[0]
        proba = probabilities(votes, power)
        history.exponents.append(power)
        history.targets.append(posterior(proba, code_targets.likely))
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
        partial = smoother.without(mask)
        history = run_sweeps(partial, code_targets, len(exponents), exponents)
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


def sweep_codes(
    smoother: FullSmoother, codes: Codes, sweeps: int
) -> tuple[FloatArray, Callable[[int], LeftOutVotes]]:
    """Return the targets after ``sweeps``, and their left-out votes by a seed.

    It draws the folds, of which none saw the codes that its votes are for.
    """
    code_targets = CodeTargets.from_codes(codes)
    history = run_sweeps(smoother, code_targets, sweeps)
    exponents = history.exponents

    def left_out(seed: int) -> LeftOutVotes:
        folds = fold_masks(len(codes), np.random.default_rng(seed))
        votes = folded_votes(smoother, code_targets, exponents, folds)
        return LeftOutVotes(np.arange(len(codes)), votes[-1])

    return history.targets[-1], left_out
