"""A client's report of protocol ``direct``: one noised direction, released once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.binary_rr import signs
from curvote.mechanisms.privunit import PrivUnit

Array = NDArray[np.float64]


class Vectors(Protocol):
    """How records (z, y) become unit vectors (n, size)."""

    @property
    def d(self) -> int:
        """Length of z."""
        ...

    @property
    def size(self) -> int:
        """Length of a report."""
        ...

    def vectors(self, z: Array, labels: Array) -> Array:
        """Return a unit vector a record, for z (n, d) and labels (n,) in -1/+1."""
        ...


@dataclass(frozen=True)
class DirectionReporter:
    """The randomizer of a whole record (z, y), which is one unit vector.

    The record is epsilon-LDP because `PrivUnit` is, whatever unit vector it is given;
    z need not be bounded. ``vectors`` says which vector a record is.
    """

    vectors: Vectors
    mechanism: PrivUnit

    @classmethod
    def build(cls, vectors: Vectors, epsilon: float) -> DirectionReporter:
        """Spend all of ``epsilon`` on the one vector."""
        return cls(vectors, PrivUnit(epsilon=epsilon, d=vectors.size))

    def release(
        self, z: Array, labels: Array, noise: Entropy, *, study: bool = False
    ) -> Array:
        """Return noised vectors (n, size) for z (n, d) and labels (n,) in -1/+1.

        ``study`` draws by parts, in floating point (see `PrivUnit.simulate`). Values
        that are not finite, other labels or other shapes are a UserError, and nothing
        is drawn.
        """
        draw = self.mechanism.simulate if study else self.mechanism.randomize
        return np.asarray(draw(self._vectors(z, labels), noise))

    def log_ratio(
        self, one: tuple[Array, Array], other: tuple[Array, Array], at: Array
    ) -> Array:
        """Return ln P(at | one) - ln P(at | other) of reports (z, y), (n,)."""
        return self.mechanism.log_ratio(
            self._vectors(*one), self._vectors(*other), np.asarray(at)
        )

    def possible(self, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each report whether an honest client can have sent it."""
        if at.ndim != 2 or at.shape[1] != self.vectors.size:
            return np.zeros(len(at), dtype=bool)
        return self.mechanism.possible(at)

    def _vectors(self, z: Array, labels: Array) -> Array:
        values = validate.finite(z=z)
        if values.ndim != 2 or values.shape[1] != self.vectors.d:
            raise UserError(
                f"z has shape {values.shape}; a report holds {self.vectors.d} numbers:"
                f" (n, {self.vectors.d})."
            )
        truth = signs(labels)
        if truth.shape != (len(values),):
            raise UserError(f"{truth.size} labels for {len(values)} records.")
        return self.vectors.vectors(values, truth)
