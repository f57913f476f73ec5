"""Twins for whole records: budgets not split, bounds taken from the record itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.discrete_gaussian import DiscreteGaussian
from curvote.mechanisms.gaussian import Gaussian
from curvote.mechanisms.grid import GRID_STEP
from curvote.mechanisms.laplace import Laplace
from curvote.validate import FloatArray

# Two records of four numbers that the formula drives apart.
FAR_APART = (
    np.array([-1.0, -0.99, -0.98, 1.02]),
    np.array([1.0, 0.0, 0.5, -0.5]),
)


class BudgetNotSplit(PerCoordinate):
    """Spends the whole epsilon on each coordinate."""

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__("laplace", d, epsilon=epsilon)
        self.scalar = Laplace(epsilon=epsilon)


class MinMax2023(PerCoordinate):
    """Rescales each record by its own (z - min|z|) / (max|z| - min|z|), unclipped.

    The formula of the 2023 paper, with noise for [-1, 1]: negative numbers leave that
    range, (-1, -.99, -.98, 1.02) becomes -49.5 and less, so no epsilon holds.
    """

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__("laplace", d, epsilon=epsilon)
        self.noise = Laplace(epsilon=self.scalar.epsilon).noise

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the records as they are, and that nothing was clipped."""
        records = self._check_records(values)
        sizes = np.abs(records)
        if (sizes.max(axis=1) == sizes.min(axis=1)).any():
            raise UserError("a record of equal magnitudes cannot be rescaled.")
        return records, 0

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        sizes = np.abs(values)
        least, most = sizes.min(axis=1), sizes.max(axis=1)
        z = (values - least[:, None]) / (most - least)[:, None]
        noise = self.noise.sample(z.size, entropy).reshape(z.shape)
        return np.asarray((np.rint(z / GRID_STEP) + noise) * GRID_STEP)


class GaussianHalved(Gaussian):
    """Draws noise that was calibrated to half the diameter of the box."""

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        noise = DiscreteGaussian(4 * self.noise.law.rate).sample(values.size, entropy)
        return np.asarray(
            (np.rint(values / GRID_STEP) + noise.reshape(values.shape)) * GRID_STEP
        )
