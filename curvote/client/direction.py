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
from curvote.representation.simplex import are_codes

Array = NDArray[np.float64]


class Vectors(Protocol):
    """How records (z, l) become unit vectors (n, size)."""

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        ...

    @property
    def d(self) -> int:
        """Length of z."""
        ...

    @property
    def size(self) -> int:
        """Length of a report."""
        ...

    def vectors(self, z: Array, codes: Array) -> Array:
        """Return a unit vector a record, for z (n, d) and codes of their classes."""
        ...


@dataclass(frozen=True)
class DirectionReporter:
    """The randomizer of a whole record (z, l), which is one unit vector.

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
        self, z: Array, codes: Array, noise: Entropy, *, study: bool = False
    ) -> Array:
        """Return noised vectors (n, size) for z (n, d) and codes of classes.

        ``codes`` are corners (n, K - 1) of the simplex, or -1/+1 (n,) of two classes.
        ``study`` draws by parts, in floating point (see `PrivUnit.simulate`). Values
        that are not finite, other codes or other shapes are a UserError, and nothing
        is drawn.
        """
        record = self._checked(z, codes)
        if study:
            return self.mechanism.simulate(self.vectors.vectors(*record), noise)
        sent = np.empty((len(record[0]), self.vectors.size))
        for start in range(0, len(sent), self.mechanism.at_once):
            part = slice(start, start + self.mechanism.at_once)
            few = self.vectors.vectors(*(values[part] for values in record))
            sent[part] = self.mechanism.randomize(few, noise)
        return sent

    def log_ratio(
        self, one: tuple[Array, Array], other: tuple[Array, Array], at: Array
    ) -> Array:
        """Return ln P(at | one) - ln P(at | other) of reports (z, l), (n,)."""
        return self.mechanism.log_ratio(
            self._vectors(*one), self._vectors(*other), np.asarray(at)
        )

    def possible(self, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each report whether an honest client can have sent it."""
        if at.ndim != 2 or at.shape[1] != self.vectors.size:
            return np.zeros(len(at), dtype=bool)
        return self.mechanism.possible(at)

    def _vectors(self, z: Array, codes: Array) -> Array:
        return self.vectors.vectors(*self._checked(z, codes))

    def _checked(self, z: Array, codes: Array) -> tuple[Array, Array]:
        """Return z and codes; UserError: other shapes, or values that are none."""
        values = validate.finite(z=z)
        if values.ndim != 2 or values.shape[1] != self.vectors.d:
            raise UserError(
                f"z has shape {values.shape}; a report holds {self.vectors.d} numbers:"
                f" (n, {self.vectors.d})."
            )
        return values, self._known(codes, len(values))

    def _known(self, codes: Array, n: int) -> Array:
        """Return codes as they are; UserError: not ``n``, or a class that is not."""
        n_classes = self.vectors.n_classes
        if np.shape(codes) not in {(n,), (n, n_classes - 1)}:
            raise UserError(
                f"labels of shape {codes.shape}: {len(codes)} labels for {n} records of"
                f" {n_classes} classes."
            )
        if n_classes == 2:
            return np.asarray(signs(codes))
        if not are_codes(codes, n_classes):
            raise UserError(f"a label is the code of none of {n_classes} classes.")
        return codes
