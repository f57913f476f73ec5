"""How well a source agrees with the target: the slope of its contrast on the target's.

The agreement <h_j, h_0> / |h_0|^2 of noised contrasts is 1 where both servers tell the
classes apart alike, 0 where one tells nothing of the other, and below where labels are
turned round. Its noise is known, so it is shrunk towards 1, what it is without further
knowledge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from curvote.transfer.forms.base import Array
from curvote.transfer.sides import Side

# How far honest servers are from 1: the standard deviation of what is expected.
PRIOR = 0.5


@dataclass(frozen=True)
class Agreement:
    """``slope`` with its standard error ``se``; ``shrunk`` in [0, 1] is what counts."""

    slope: float
    se: float

    @property
    def shrunk(self) -> float:
        """The posterior mean under N(1, `PRIOR`^2), cut to [0, 1]."""
        if not math.isfinite(self.se):
            return 1.0
        part = PRIOR**2 / (PRIOR**2 + self.se**2)
        return min(1.0, max(0.0, 1 + part * (self.slope - 1)))


def agreements(sides: Sequence[Side], target: int) -> list[Agreement]:
    """Return the agreement of each server with the target, whose own is 1."""
    own = sides[target]
    return [
        Agreement(1.0, 0.0) if side is own else _agreement(side, own) for side in sides
    ]


def _agreement(side: Side, own: Side) -> Agreement:
    """Return the slope; without a sign of the target's contrast, one that is unknown.

    The variance of <h_j, h_0> is that of independent noise on both, sampling included.
    """
    size = own.rows.size
    energy = _energy(own.rows) - size * own.noise
    doubt = math.sqrt(2 * size) * own.noise
    if energy <= doubt:
        return Agreement(1.0, math.inf)
    product = float((side.rows * own.rows).sum())
    variance = (
        side.variance * energy
        + own.variance * max(_energy(side.rows) - size * side.noise, 0)
        + size * side.noise * own.noise
    )
    return Agreement(product / energy, math.sqrt(variance) / energy)


def _energy(rows: Array) -> float:
    return float(np.sum(rows**2))
