"""Direction reporters: a record as one noised unit vector, with or without a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.classes import class_indices
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.curves.direction import Directions, are_class_codes
from curvote.mechanisms.privunit import OneOf, PrivUnit
from curvote.mechanisms.randomized_response import check_signs

Array = NDArray[np.float64]


class Vectors(Protocol):
    """Protocol of maps from records (z, code) to unit vectors (n, size)."""

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        ...

    @property
    def d(self) -> int:
        """The length of z."""
        ...

    @property
    def size(self) -> int:
        """The length of a report."""
        ...

    def vectors(self, z: Array, codes: Array) -> Array:
        """Return a unit vector for each record z (n, d) and class code."""
        ...


@dataclass(frozen=True)
class DirectionReporter:
    """The randomizer of a record (z, code) as one unit vector.

    The record is epsilon-LDP because `PrivUnit` is, whatever unit vector it is given;
    z need not be bounded. ``vectors`` says which vector a record is.
    """

    vectors: Vectors
    mechanism: PrivUnit

    @classmethod
    def build(cls, vectors: Vectors, epsilon: float) -> DirectionReporter:
        """Build the reporter that spends all of ``epsilon`` on one vector."""
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
        record = self._check_records(z, codes)
        if study:
            return self.mechanism.simulate(self.vectors.vectors(*record), noise)
        reports = np.empty((len(record[0]), self.vectors.size))
        for start in range(0, len(reports), self.mechanism.batch_size):
            part = slice(start, start + self.mechanism.batch_size)
            batch = self.vectors.vectors(*(values[part] for values in record))
            reports[part] = self.mechanism.randomize(batch, noise)
        return reports

    def log_ratio(
        self, first: tuple[Array, Array], second: tuple[Array, Array], at: Array
    ) -> Array:
        """Return ln P(at | first) - ln P(at | second) of reports, (n,)."""
        return self.mechanism.log_ratio(
            self._unit_vectors(*first), self._unit_vectors(*second), np.asarray(at)
        )

    def possible(self, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each report whether an honest client can send it."""
        if at.ndim != 2 or at.shape[1] != self.vectors.size:
            return np.zeros(len(at), dtype=bool)
        return self.mechanism.possible_mask(at)

    def _unit_vectors(self, z: Array, codes: Array) -> Array:
        return self.vectors.vectors(*self._check_records(z, codes))

    def _check_records(self, z: Array, codes: Array) -> tuple[Array, Array]:
        """Return z and codes if their shapes and values are valid."""
        values = validate.finite(z=z)
        if values.ndim != 2 or values.shape[1] != self.vectors.d:
            raise UserError(
                f"z has shape {values.shape}; a report holds {self.vectors.d} numbers:"
                f" (n, {self.vectors.d})."
            )
        return values, self._check_codes(codes, len(values))

    def _check_codes(self, codes: Array, n: int) -> Array:
        """Return ``n`` valid class codes; others are a UserError."""
        n_classes = self.vectors.n_classes
        if np.shape(codes) not in {(n,), (n, n_classes - 1)}:
            raise UserError(
                f"labels of shape {codes.shape}: {len(codes)} labels for {n} records of"
                f" {n_classes} classes."
            )
        if n_classes == 2:
            return np.asarray(check_signs(codes))
        if not are_class_codes(codes, n_classes):
            raise UserError(f"a label is the code of none of {n_classes} classes.")
        return codes


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
