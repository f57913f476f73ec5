"""Agreement of a source with the target: the slope of its contrast on the target's.

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
from curvote.transfer.sides import Contrasts

# How far honest servers are from 1: the standard deviation of what is expected.
PRIOR = 0.5


@dataclass(frozen=True)
class Agreement:
    """Slope of a source's contrast on the target's, with standard error ``se``."""

    slope: float
    se: float

    @property
    def counts(self) -> float:
        """Posterior mean slope under N(1, `PRIOR`^2), cut to [0, 1], as a factor.

        Times the odds that they do, 1 at most: that the slope came from N(1, v), not
        from labels turned round, N(-1, v), either as likely before.
        """
        if not math.isfinite(self.se):
            return 1.0
        variance = PRIOR**2 + self.se**2
        mean = 1 + PRIOR**2 / variance * (self.slope - 1)
        stand = 2 / (1 + math.exp(min(-2 * self.slope / variance, 700.0)))
        return min(1.0, max(0.0, mean)) * min(1.0, stand)


def agreements(sides: Sequence[Contrasts], target: int) -> list[Agreement]:
    """Return the agreement of each server with the target; the target's is 1."""
    target_side = sides[target]
    return [
        Agreement(1.0, 0.0)
        if side is target_side
        else _slope_agreement(side, target_side)
        for side in sides
    ]


def _slope_agreement(side: Contrasts, target: Contrasts) -> Agreement:
    """Return a source's slope; infinite se if the target's contrast is noise.

    The variance of <h_j, h_0> is that of independent errors of both; that of |h_0|^2
    counts as far as there is any without a difference.
    """
    source_difference, target_difference = _Difference.of(side), _Difference.of(target)
    if target_difference.energy <= target_difference.energy_se:
        return Agreement(1.0, math.inf)
    product = float((source_difference.rows * target_difference.rows).sum())
    variance = (
        source_difference.along * target_difference.energy
        + target_difference.along * max(source_difference.energy, 0)
        + target_difference.rows.size
        * target_difference.noise
        * source_difference.noise
        + target_difference.energy_se**2
    )
    return Agreement(
        product / target_difference.energy,
        math.sqrt(variance) / target_difference.energy,
    )


@dataclass(frozen=True)
class _Difference:
    """Difference vectors (R, m) of one server, with their error variances.

    ``noise`` is that of a coordinate due to privacy, ``sampling`` that of a query due
    to the number of records, which is also their sum over the coordinates of a row.
    """

    rows: Array
    noise: float
    sampling: float

    @classmethod
    def of(cls, side: Contrasts) -> _Difference:
        """Return the difference vectors of one server's contrasts."""
        scale = side.clear**2
        return cls(side.differences, side.noise / scale, side.sampling / scale)

    @property
    def energy(self) -> float:
        """Squared norm of the differences, corrected for their errors."""
        error_energy = self.rows.size * self.noise + len(self.rows) * self.sampling
        return float((self.rows**2).sum()) - error_energy

    @property
    def energy_se(self) -> float:
        """Standard deviation of `energy` where there is no difference."""
        return math.sqrt(2 * self.rows.size) * self.noise + self.sampling

    @property
    def along(self) -> float:
        """Error variance along one direction."""
        return self.noise + self.sampling
