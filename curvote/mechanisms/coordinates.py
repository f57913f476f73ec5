"""A scalar mechanism on each coordinate of a record, within one budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.registry import make
from curvote.privacy import Budget
from curvote.validate import FloatArray


class PerCoordinate(Mechanism):
    """Spends ``epsilon`` on a record of ``d`` values, epsilon/d on each.

    ``scalar`` is the mechanism of one coordinate. Values are (n, d), anything else is
    a UserError. ``mean`` and ``variance`` are those of each coordinate, (n, d); the
    privacy loss of a record is the sum over its coordinates.
    """

    def __init__(self, scalar: str, d: int, *, epsilon: float) -> None:
        self.scalar = make(scalar, epsilon=Budget(epsilon).each(d).epsilon)
        super().__init__(epsilon=epsilon)
        self.name, self.unbiased, self.d = scalar, self.scalar.unbiased, d
        self.delta = d * self.scalar.delta

    def clip(self, values: ArrayLike) -> tuple[FloatArray, int]:
        """Return the records clipped, and how many coordinates were outside."""
        shape = np.shape(values)
        if len(shape) != 2 or shape[1] != self.d:
            raise UserError(
                f"values has shape {shape}; {self.name} on {self.d} coordinates takes"
                f" one row for each client: (n, {self.d})."
            )
        return self.scalar.clip(values)

    def _draw(self, values: FloatArray, entropy: Entropy) -> FloatArray:
        return self.scalar.randomize(values, entropy)

    def mean(self, x: ArrayLike) -> FloatArray:
        """Return the exact mean of each coordinate of the output, [n, d]."""
        return self.scalar.mean(x)

    def variance(self, x: ArrayLike) -> FloatArray:
        """Return the exact variance of each coordinate of the output, [n, d]."""
        return self.scalar.variance(x)

    def log_ratio(self, x: ArrayLike, x2: ArrayLike, at: ArrayLike) -> FloatArray:
        """Return ln P(at | x) - ln P(at | x2), [n], for records [n, d]."""
        return np.asarray(self.scalar.log_ratio(x, x2, at).sum(axis=-1))

    def worst_log_ratio(self) -> float:
        """Return d times the loss of one coordinate."""
        return self.d * self.scalar.worst_log_ratio()


def per_coordinate(name: str, d: int, epsilon: float) -> PerCoordinate:
    """Build the scalar mechanism ``name`` for (n, d), spending ``epsilon`` in all."""
    return PerCoordinate(name, d, epsilon=epsilon)
