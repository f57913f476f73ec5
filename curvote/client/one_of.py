"""Reporter of 1-of-K: a record as one of the classes and a noised direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.classes import class_indices
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms.one_of import OneOf
from curvote.representation.direction import Directions

Array = NDArray[np.float64]
Labels = NDArray[Any]
# The class and the direction of records, or of reports.
ClassDirection = tuple[NDArray[np.int64], Array]


@dataclass(frozen=True)
class OneOfReporter:
    """The randomizer of a record (z, y) as its class and one unit vector.

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
        """Build the reporter that spends all of ``epsilon`` on one report."""
        d = n_classes * vectors.size
        return cls(vectors, OneOf(epsilon=epsilon, d=d, n_classes=n_classes))

    def release(
        self, z: Array, labels: Labels, noise: Entropy, *, study: bool = False
    ) -> ClassDirection:
        """Return classes (n,) and noised vectors (n, size) for z (n, d) and labels.

        Labels are places of classes. ``study`` draws by parts, in floating point (see
        `OneOf.simulate_reports`). Values that are not finite, labels that are no
        classes or other shapes are a UserError, and nothing is drawn.
        """
        draw = self.mechanism.simulate_reports if study else self.mechanism.answers
        return draw(*self._encode_record(z, labels), noise)

    def log_ratio(
        self,
        first_record: tuple[Array, Labels],
        second_record: tuple[Array, Labels],
        at: ClassDirection,
    ) -> Array:
        """Return ln P(at | first) - ln P(at | second) of two records, (n,)."""
        first, second = (
            self.mechanism.log_likelihood(self._encode_record(*record), at)
            for record in (first_record, second_record)
        )
        return np.asarray(first - second)

    def possible(self, classes: NDArray[Any], at: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each report whether an honest client can send it."""
        valid = (classes >= 0) & (classes < self.mechanism.n_classes)
        if at.ndim != 2 or at.shape[1] != self.vectors.size:
            return np.zeros(len(at), dtype=bool)
        return np.asarray(valid & self.mechanism.has_report_length(at))

    def _encode_record(self, z: Array, labels: Labels) -> ClassDirection:
        values = validate.finite(z=z)
        if values.ndim != 2 or values.shape[1] != self.vectors.d:
            raise UserError(
                f"z has shape {values.shape}; a report holds {self.vectors.d} numbers:"
                f" (n, {self.vectors.d})."
            )
        truth = class_indices(labels, self.mechanism.n_classes)
        if truth.shape != (len(values),):
            raise UserError(f"{truth.size} labels for {len(values)} records.")
        return truth, self.vectors.vectors(values, np.ones(len(values)))
