"""Whether to sweep: smoothers and sweeps judged on equal terms, in folds of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curvote.labels.learners.base import LeftOut
from curvote.labels.learners.choice import Tried, judged, likeliest, simplest
from curvote.labels.learners.smoothing import Known, Mask, Whole, folded, masks, stages
from curvote.validate import FloatArray

MOST = 2
# Sweeps are tried where the codes have at most so many numbers, n K.
NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class Option:
    """A smoother that sweeps may improve, under the settings that make it."""

    name: str
    params: Mapping[str, Any]
    smoother: Whole


@dataclass(frozen=True, eq=False)
class Judged:
    """What was tried, and the fold votes (n, K) that it was judged by."""

    tried: Tried
    votes: FloatArray

    def left_out(self) -> LeftOut:
        """Return the votes as a learner's left-out votes."""
        return LeftOut(np.arange(len(self.votes)), self.votes)


def swept(
    options: Sequence[Option], known: Known, held: Sequence[Mask]
) -> list[Judged]:
    """Judge the first option as it is, and every one after 1 to 2 sweeps.

    Options smooth less and less: sweeps gain with little smoothing.
    """
    found = []
    for place, option in enumerate(options):
        made = stages(option.smoother, known, MOST)
        votes = folded(option.smoother, known, made.exponents, held)
        for sweeps in range(min(1, place), MOST + 1):
            params = {**option.params, "sweeps": sweeps}
            told = judged(option.name, params, votes[sweeps], known.likely)
            found.append(Judged(told, votes[sweeps]))
    return found


def settled(found: Sequence[Judged]) -> Judged:
    """Return the simpler of the first and the likeliest other.

    The first, if it cannot be told from the likeliest.
    """
    first, *others = (one.tried for one in found)
    best = simplest([first, likeliest(others)]) if others else first
    return next(one for one in found if one.tried is best)


def after_sweeps(
    smoother: Whole, known: Known, exponents: Sequence[int], seed: int
) -> LeftOut:
    """Return the votes after sweeps by folds that never saw the codes."""
    n = len(known.decoded)
    held = masks(n, np.random.default_rng(seed))
    return LeftOut(np.arange(n), folded(smoother, known, exponents, held)[-1])
