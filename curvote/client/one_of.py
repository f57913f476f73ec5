"""A client's report by 1-of-K: one of the classes and a direction, released once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.classes import places
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.one_of import OneOf
from curvote.representation.direction import Directions

Array = NDArray[np.float64]
Labels = NDArray[Any]
# The class and the direction of records, or of reports.
Answer = tuple[NDArray[np.int64], Array]


@dataclass(frozen=True)
class OneOfReporter:
    """The randomizer of a whole record (z, y): its class and one unit vector.

    The record is epsilon-LDP because `OneOf` is, whatever class and unit vector it is
    given; z need not be bounded. ``vectors`` says which unit vector z is, without its
    class: that of the class +1 of two.
    """

    vectors: Directions
    mechanism: OneOf

    @classmethod
    def build(
        cls, vectors: Directions, n_classes: int, epsilon: float
    ) -> OneOfReporter:
        """Spend all of ``epsilon`` on class and vector together."""
        d = n_classes * vectors.size
        return cls(vectors, OneOf(epsilon=epsilon, d=d, n_classes=n_classes))

    def release(
        self, z: Array, labels: Labels, noise: Entropy, *, study: bool = False
    ) -> Answer:
        """Return classes (n,) and noised vectors (n, size) for z (n, d) and labels.

        Labels are places of classes. ``study`` draws by parts, in floating point (see
        `OneOf.simulated`). Values that are not finite, labels that are no classes or
        other shapes are a UserError, and nothing is drawn.
        """
        draw = self.mechanism.simulated if study else self.mechanism.answers
        return draw(*self._record(z, labels), noise)

    def log_ratio(
        self, one: tuple[Array, Labels], other: tuple[Array, Labels], at: Answer
    ) -> Array:
        """Return ln P(at | one) - ln P(at | other) of records (z, y), (n,)."""
        first, second = (
            self.mechanism.log_likelihood(self._record(*record), at)
            for record in (one, other)
        )
        return np.asarray(first - second)

    def possible(self, named: NDArray[Any], at: NDArray[Any]) -> NDArray[np.bool_]:
        """Say for each report whether an honest client can have sent it."""
        there = (named >= 0) & (named < self.mechanism.n_classes)
        if at.ndim != 2 or at.shape[1] != self.vectors.size:
            return np.zeros(len(at), dtype=bool)
        return np.asarray(there & self.mechanism.as_long(at))

    def _record(self, z: Array, labels: Labels) -> Answer:
        values = validate.finite(z=z)
        if values.ndim != 2 or values.shape[1] != self.vectors.d:
            raise UserError(
                f"z has shape {values.shape}; a report holds {self.vectors.d} numbers:"
                f" (n, {self.vectors.d})."
            )
        truth = places(labels, self.mechanism.n_classes)
        if truth.shape != (len(values),):
            raise UserError(f"{truth.size} labels for {len(values)} records.")
        return truth, self.vectors.vectors(values, np.ones(len(values)))
