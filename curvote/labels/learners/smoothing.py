"""Linear smoothers of codes, sweeps over them, and votes that do not know a code.

A sweep replaces each decoded code by its posterior under the votes of the others, and
smooths again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.labels import calibration
from curvote.labels.codes import Codes
from curvote.validate import FloatArray

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
