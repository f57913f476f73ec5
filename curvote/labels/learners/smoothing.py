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

    ``own`` (n, 1) is what a record's own target weighs in its vote.
    """

    own: FloatArray

    @abstractmethod
    def smooth(self, targets: FloatArray) -> FloatArray:
        """Return the votes (n, K) of targets (n, K)."""

    def left_out(self, targets: FloatArray) -> FloatArray:
        """Return the vote for each record by all others, (n, K)."""
        votes = self.smooth(targets)
        return np.asarray((votes - self.own * targets) / (1 - self.own))


class Whole(Smoother):
    """A smoother that learns from all records, and can do without some."""

    @abstractmethod
    def without(self, held: Mask) -> Smoother:
        """Return the smoother that learns nothing of the targets of some records."""


class Known(NamedTuple):
    """What all smoothers ask of codes: decoded ones and their likelihood, (n, K)."""

    decoded: FloatArray
    likely: FloatArray

    @classmethod
    def of(cls, codes: Codes) -> Known:
        """Return what is asked of some codes."""
        return cls(codes.decode(), codes.likelihood())


class Stages(NamedTuple):
    """Votes after 0, 1, ... sweeps: targets, left-out votes (n, K) and exponents."""

    targets: list[FloatArray]
    votes: list[FloatArray]
    exponents: list[int]


def stages(
    smoother: Smoother, known: Known, sweeps: int, exponents: Sequence[int] = ()
) -> Stages:
    """Return all stages up to ``sweeps``; exponents that are not given are chosen."""
    made = Stages([known.decoded], [], [])
    for stage in range(sweeps + 1):
        votes = smoother.left_out(made.targets[-1])
        made.votes.append(votes)
        if stage == sweeps:
            break
        given = exponents[stage] if stage < len(exponents) else None
        power = given or calibration.best(votes, known.likely)[0]
        proba = calibration.probabilities(votes, power)
        made.exponents.append(power)
        made.targets.append(calibration.posterior(proba, known.likely))
    return made


def masks(n: int, rng: np.random.Generator) -> list[Mask]:
    """Return which of ``n`` records each fold holds out, (n,); each record once."""
    place = rng.permutation(n) % FOLDS
    return [place == fold for fold in range(min(FOLDS, n))]


def folded(
    smoother: Whole,
    known: Known,
    exponents: Sequence[int],
    held: Sequence[Mask],
) -> list[FloatArray]:
    """Return the votes (n, K) after each sweep by folds that never saw the code.

    Without a record's own target a vote after a sweep still knows its code: the others'
    posteriors do. Here they are made of other folds' codes.
    """
    votes = [np.empty_like(known.decoded) for _ in range(len(exponents) + 1)]
    for mask in held:
        made = stages(smoother.without(mask), known, len(exponents), exponents)
        for whole, part in zip(votes, made.votes, strict=True):
            whole[mask] = part[mask]
    return votes
