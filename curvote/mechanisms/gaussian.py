"""Gaussian mechanism on records in [-1, 1]^d, exact on a dyadic grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.mechanisms.base import VectorMechanism
from curvote.mechanisms.gaussian_noise import OUTPUT_LIMIT, GaussianNoise
from curvote.mechanisms.grid import GRID_BITS, GRID_ONE, GRID_STEP, grid_index
from curvote.mechanisms.law import Mixture, continuous_law, product_law
from curvote.validate import FloatArray


def box_diameter(d: int) -> float:
    """Return the diameter of [-1, 1]^d in grid steps: 2^21 sqrt(d)."""
    return math.ldexp(math.sqrt(d), GRID_BITS + 1)


class Gaussian(VectorMechanism):
    """Adds Gaussian noise to a record in [-1, 1]^d: (epsilon, delta)-private.

    Each coordinate is rounded to the grid of step 2^-20 (halves to even) before the
    noise, an exact discrete Gaussian on the same grid (Canonne, Kamath & Steinke
    2020), for the box's diameter 2 sqrt(d) (`GaussianNoise`).
    """

    name = "gaussian"
    unbiased = True

    def __init__(self, *, epsilon: float, d: int, delta: float) -> None:
        super().__init__(epsilon=epsilon, d=d)
        self.delta = validate.fraction(delta=delta)
        self.noise = GaussianNoise(box_diameter(self.d), self.epsilon, self.delta)

    @property
    def sigma(self) -> float:
        """The noise's standard deviation in each coordinate."""
        return self.noise.sigma * GRID_STEP

    @property
    def rho(self) -> float:
        """The zCDP parameter: diameter^2 / (2 sigma^2) (Canonne et al., theorem 4)."""
        return self.noise.rho

    def delta_at(self, epsilon: float) -> float:
        """Return the delta at another ``epsilon`` >= 0, rounded towards privacy."""
        return self.noise.delta_at(epsilon)

    def worst_log_ratio(self) -> float:
        """Return the least epsilon' with (epsilon', ``delta``), of the law drawn from.

        The loss itself is unbounded: ``log_ratio`` exceeds it with small probability.
        """
        return self.noise.worst_log_ratio()

    def _to_steps(self, x: ArrayLike) -> NDArray[np.int64]:
        clipped, _ = self.clip(x)
        return grid_index(clipped)

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return np.asarray(self.noise.add(self._to_steps(values), entropy) * GRID_STEP)

    def possible_mask(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each record whether all are grid points within the cut."""
        steps = np.asarray(outputs, dtype=np.float64) / GRID_STEP
        on_grid = (steps == np.rint(steps)) & (np.abs(steps) <= OUTPUT_LIMIT)
        return np.asarray(on_grid.all(axis=-1))

    def tail_bound(self, probability: float) -> float:
        """Return 1 and the reach of the noise, at most 2^33."""
        return min(GRID_ONE + self.noise.reach(probability), OUTPUT_LIMIT) * GRID_STEP

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the grid point of each coordinate, at most 2^-21 from it, (n, d)."""
        return np.asarray(self._to_steps(x) * GRID_STEP)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return sigma^2 for each coordinate, (n, d)."""
        return np.full(np.shape(x), self.sigma**2)

    def law(self, x: ArrayLike) -> Mixture:
        """Return one term: the noise's law around each coordinate's grid point."""
        columns = self._to_steps(x).T[..., None].astype(np.float64)

        def cdf(steps: FloatArray, at: FloatArray) -> FloatArray:
            return self.noise.law.cdf(np.floor(at / GRID_STEP) - steps)

        return product_law(*(continuous_law(column, cdf) for column in columns))

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2), (n,), for grid points ``at``."""
        pair = self._to_steps(x), self._to_steps(x2)
        return self.noise.log_ratio(*pair, np.asarray(at) / GRID_STEP)
