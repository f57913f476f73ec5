"""PrivUnit and 1-of-K: directions reported as vectors of constant length.

The height h = <v, u> of a uniform unit vector v of R^d has the density
c (1 - h^2)^((d-3)/2); its square is Beta(1/2, (d-1)/2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from curvote.validate import FloatArray

# So that some 4096 candidates a client are enough, whatever epsilon is.
SMALLEST_SHARE = 2.0**-12


@dataclass(frozen=True)
class Cap:
    """The cap {v: <v, u> >= gamma} of the unit sphere of R^d, 0 <= gamma < 1."""

    gamma: float
    d: int

    @property
    def _sine_squared(self) -> float:
        """1 - gamma^2, without cancellation."""
        return (1 - self.gamma) * (1 + self.gamma)

    @property
    def share(self) -> float:
        """The cap's share of the sphere."""
        return float(special.betainc((self.d - 1) / 2, 0.5, self._sine_squared)) / 2

    @property
    def first(self) -> float:
        """The partial mean E[h; h >= gamma] of the height."""
        power = (self.d - 1) / 2
        log = power * math.log(self._sine_squared) - special.betaln(0.5, power)
        return float(math.exp(log) / (self.d - 1))

    @property
    def second(self) -> float:
        """The partial second moment E[h^2; h >= gamma] of the height."""
        return ((self.d - 1) * self.gamma * self.first + self.share) / self.d

    def draw_heights(
        self, inside: NDArray[np.bool_], uniform: FloatArray
    ) -> FloatArray:
        """Return heights inside the cap or outside it from uniform numbers."""
        above = np.where(
            inside, uniform * self.share, self.share + uniform * (1 - self.share)
        )
        tail = 2 * np.minimum(above, 1 - above)
        square = special.betainccinv(0.5, (self.d - 1) / 2, tail)
        return np.asarray(np.copysign(np.sqrt(square), 0.5 - above))


def _mean_height(gamma: float, d: int, epsilon: float, spheres: int) -> float:
    """Return the mean height E<v, u> of a draw with a cap at ``gamma``."""
    cap, gain = Cap(gamma, d), -math.expm1(-epsilon)
    return cap.first / spheres * gain / (1 - (1 - cap.share / spheres) * gain)


def best_cap(epsilon: float, d: int, spheres: int = 1) -> Cap:
    """Return the cap of the least variance, that is, of the largest E<v, u>.

    The derivative of E<v, u> in gamma has the sign of E<v, u> - gamma, so the best
    gamma is the mean height itself. The cap's share is ``SMALLEST_SHARE`` at least, of
    all ``spheres`` together where v lies on one of several and <v, u> is 0 on others.
    """
    square = special.betainccinv(0.5, (d - 1) / 2, 2 * SMALLEST_SHARE * spheres)
    highest = math.sqrt(square)
    if _mean_height(highest, d, epsilon, spheres) >= highest:
        return Cap(highest, d)
    from scipy import optimize  # where no optimum is sought, not worth its time

    gamma = optimize.brentq(
        lambda gamma: _mean_height(gamma, d, epsilon, spheres) - gamma, 0.0, highest
    )
    return Cap(float(gamma), d)
