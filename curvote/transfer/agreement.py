"""How well a source agrees with the target: the slope of its contrast on the target's.

The agreement <h_j, h_0> / |h_0|^2 of noised contrasts is 1 where both servers tell the
classes apart alike, 0 where one tells nothing of the other, and below where labels are
turned round. Its noise is known, so it is shrunk towards 1, what it is without further
knowledge, and counts for less where turned labels explain it better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from curvote.transfer.forms.base import Array
from curvote.transfer.sides import Side

# How far honest servers are from 1: the standard deviation of what is expected.
PRIOR = 0.5


@dataclass(frozen=True)
class Agreement:
    """``slope`` with its standard error ``se``; ``counts`` in [0, 1] is what of it."""

    slope: float
    se: float

    @property
    def counts(self) -> float:
        """The posterior mean under N(1, `PRIOR`^2), cut to [0, 1], if labels stand.

        Times the odds that they do, 1 at most: that the slope came from N(1, v), not
        from labels turned round, N(-1, v), either as likely before.
        """
        if not math.isfinite(self.se):
            return 1.0
        variance = PRIOR**2 + self.se**2
        mean = 1 + PRIOR**2 / variance * (self.slope - 1)
        stand = 2 / (1 + math.exp(min(-2 * self.slope / variance, 700.0)))
        return min(1.0, max(0.0, mean)) * min(1.0, stand)


def agreements(sides: Sequence[Side], target: int) -> list[Agreement]:
    """Return the agreement of each server with the target, whose own is 1."""
    own = sides[target]
    return [
        Agreement(1.0, 0.0) if side is own else _agreement(side, own) for side in sides
    ]


def _agreement(side: Side, own: Side) -> Agreement:
    """Return the slope; without a sign of the target's contrast, one that is unknown.

    The variance of <h_j, h_0> is that of independent errors of both; that of |h_0|^2
    counts as far as there is any without a difference.
    """
    theirs, ours = _Difference.of(side), _Difference.of(own)
    if ours.energy <= ours.doubt:
        return Agreement(1.0, math.inf)
    product = float((theirs.rows * ours.rows).sum())
    variance = (
        theirs.along * ours.energy
        + ours.along * max(theirs.energy, 0)
        + ours.rows.size * ours.noise * theirs.noise
        + ours.doubt**2
    )
    return Agreement(product / ours.energy, math.sqrt(variance) / ours.energy)


@dataclass(frozen=True)
class _Difference:
    """A server's `differences` (R, m), with the variances of what is wrong with them.

    ``noise`` is that of a coordinate due to privacy, ``sampling`` that of a query due
    to the number of records, which is also their sum over the coordinates of a row.
    """

    rows: Array
    noise: float
    sampling: float

    @classmethod
    def of(cls, side: Side) -> _Difference:
        scale = side.clear**2
        return cls(side.differences, side.noise / scale, side.sampling / scale)

    @property
    def energy(self) -> float:
        """The square of the differences' norm, without that of their errors."""
        wrong = self.rows.size * self.noise + len(self.rows) * self.sampling
        return float((self.rows**2).sum()) - wrong

    @property
    def doubt(self) -> float:
        """The standard deviation of `energy` where there is no difference."""
        return math.sqrt(2 * self.rows.size) * self.noise + self.sampling

    @property
    def along(self) -> float:
        """The variance along one direction."""
        return self.noise + self.sampling
