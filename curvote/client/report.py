"""Reports of training clients and votes of evaluation clients, noised once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.classes import class_indices
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget, label_budget_share
from curvote.curves.direction import Directions, Gradients, are_class_codes
from curvote.curves.encoding import decision_sign
from curvote.mechanisms import factory
from curvote.mechanisms.base import ScalarMechanism, VectorMechanism
from curvote.mechanisms.coordinates import per_coordinate
from curvote.mechanisms.randomized_response import BinaryRR, check_signs
from curvote.wire.task import Task

if TYPE_CHECKING:
    from curvote.mechanisms.privunit import OneOf, PrivUnit

Array = NDArray[np.float64]

# Numbers that honest clients send less often are cut off by whoever gathers reports.
RARE_PROBABILITY = 2.0**-40


@dataclass(frozen=True)
class Reporter:
    """The two randomizers of a report (MRMA section 5.1, eqs 13 and 14).

    The whole record (z, y) is epsilon-LDP: sequential composition of the ``features``
    mechanism, which splits its budget over the d coordinates unless it takes the whole
    vector, and of the ``label``'s.
    """

    features: VectorMechanism
    label: BinaryRR

    @classmethod
    def build(
        cls,
        d: int,
        epsilon: float,
        mechanism: str,
        share: float | str,
        params: Mapping[str, Any] | None = None,
    ) -> Reporter:
        """Build the reporter that splits ``epsilon`` over label and features.

        ``params`` are the mechanism's own. One for single labels is a UserError.
        """
        label, features = Budget(epsilon).split(label_budget_share(share, d))
        kind, parameters = factory.mechanism_class(mechanism), params or {}
        numbers: VectorMechanism
        if issubclass(kind, ScalarMechanism) and kind is not BinaryRR:
            numbers = per_coordinate(mechanism, d, features.epsilon, **parameters)
        elif issubclass(kind, VectorMechanism):
            vector_mechanism = factory.make(
                mechanism, epsilon=features.epsilon, d=d, **parameters
            )
            numbers = cast("VectorMechanism", vector_mechanism)
        else:
            raise UserError(
                f"mechanism is {mechanism!r}, which takes labels; the numbers of a"
                " report need another."
            )
        return cls(numbers, BinaryRR(epsilon=label.epsilon))

    @classmethod
    def for_task(cls, task: Task) -> Reporter:
        """Return the reporter of a published task."""
        d, share = task.encoding.d, task.label_share
        return cls.build(d, task.epsilon, task.mechanism, share, task.params)

    def release(
        self,
        z: Array,
        labels: Array,
        noise: Entropy,
        label_noise: Entropy,
        *,
        study: bool = False,
    ) -> tuple[Array, Array]:
        """Release ``z`` (n, d) in [-1, 1] and ``labels`` (n,) in -1/+1, a row a client.

        A NaN or an unknown label is a UserError and nothing is released. A ``study``
        may draw the same law in a quicker way that protects nobody.
        """
        if len(z) != len(labels):
            raise UserError(f"{len(z)} rows of z but {len(labels)} labels.")
        # Both are checked before either is drawn: half a report would cost as much.
        try:
            clipped, _ = self.features.clip(self._to_domain(z))
            labels, _ = self.label.clip(labels)
        except UserError as error:
            raise UserError(f"{error} Nothing was released.") from None
        draw = self.features.simulate if study else self.features.randomize
        noised = self._from_unit(draw(clipped, noise))
        return noised, self.label.randomize(labels, label_noise)

    def log_ratio(
        self, first: tuple[Array, Array], second: tuple[Array, Array], at: Columns
    ) -> Array:
        """Return ln P(at | first) - ln P(at | second) of reports (z, y), (n,)."""
        ours, theirs = self._to_domain(first[0]), self._to_domain(second[0])
        loss = self.features.log_ratio(ours, theirs, self._to_output(at["z"]))
        return np.asarray(loss + self.label.log_ratio(first[1], second[1], at["label"]))

    def possible(self, at: Columns) -> NDArray[np.bool_]:
        """Return for each report whether an honest client can send it."""
        features = self.features.possible_mask(self._to_output(at["z"]))
        return np.asarray(features & self.label.possible_mask(at["label"]))

    def trimmed(self, z: Array) -> Array:
        """Return reported z with improbably large numbers cut off.

        An honest number lies beyond with probability 2^-40 at most. A liar gains no
        more than that bound, and an honest client's budget is not lost as by refusing.
        """
        most = self.features.tail_bound(RARE_PROBABILITY)
        return np.clip(z, *self._from_unit(np.array([-most, most])))

    def _to_domain(self, z: Array) -> Array:
        """Return [-1, 1] mapped to the mechanism's domain."""
        return z if self.features.low < 0 else (np.asarray(z) + 1) / 2

    def _from_unit(self, noised: Array) -> Array:
        """Return outputs on [0, 1] mapped to [-1, 1]."""
        return 2 * noised - 1 if self.features.unit_scale else noised

    def _to_output(self, z: Array) -> Array:
        """Return the mechanism's output for a reported z."""
        return (np.asarray(z) + 1) / 2 if self.features.unit_scale else z


Columns = Mapping[str, NDArray[Any]]


def candidate_scores(
    features: Array, coef: Array, intercept: Array, candidate: NDArray[np.int64]
) -> Array:
    """Return the score of each client's candidate on its features.

    ``features`` (n, d), ``coef`` (B, d), ``intercept`` (B,), ``candidate`` (n,).
    """
    products = np.einsum("nd,nd->n", features, coef[candidate])
    return np.asarray(products + intercept[candidate])


def draw_votes(
    decision: Array, labels: Array, epsilon: float, entropy: Entropy
) -> NDArray[np.bool_]:
    """Return one noised bit a client: was its candidate right (MRMA 6, 7).

    A client's whole ``epsilon`` goes into this bit; f(x) = 0 predicts -1. A label other
    than -1 and +1 is a UserError, and nothing is drawn.
    """
    mechanism = BinaryRR(epsilon=epsilon)
    labels, _ = mechanism.clip(labels)
    right = np.where(decision_sign(decision) == labels, 1.0, -1.0)
    return mechanism.randomize(right, entropy) > 0


# Maps from records (z, code) to unit vectors (n, size).
Vectors = Directions | Gradients


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
        # Imported where it is drawn: clients of other messages do without SciPy.
        from curvote.mechanisms.privunit import PrivUnit

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
        ours = self.vectors.vectors(*self._check_records(*first))
        theirs = self.vectors.vectors(*self._check_records(*second))
        return self.mechanism.log_ratio(ours, theirs, np.asarray(at))

    def possible(self, at: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each report whether an honest client can send it."""
        if at.ndim != 2 or at.shape[1] != self.vectors.size:
            return np.zeros(len(at), dtype=bool)
        return self.mechanism.possible_mask(at)

    def _check_records(self, z: Array, codes: Array) -> tuple[Array, Array]:
        values = _check_numbers(z, self.vectors.d)
        n, n_classes = len(values), self.vectors.n_classes
        if np.shape(codes) not in {(n,), (n, n_classes - 1)}:
            raise UserError(
                f"labels of shape {codes.shape}: {len(codes)} labels for {n} records of"
                f" {n_classes} classes."
            )
        if n_classes == 2:
            return values, np.asarray(check_signs(codes))
        if not are_class_codes(codes, n_classes):
            raise UserError(f"a label is the code of none of {n_classes} classes.")
        return values, codes


def _check_numbers(z: Array, d: int) -> Array:
    values = validate.finite(z=z)
    if values.ndim != 2 or values.shape[1] != d:
        raise UserError(
            f"z has shape {values.shape}; a report holds {d} numbers: (n, {d})."
        )
    return values


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
        from curvote.mechanisms.privunit import OneOf

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
        values = _check_numbers(z, self.vectors.d)
        truth = class_indices(labels, self.mechanism.n_classes)
        if truth.shape != (len(values),):
            raise UserError(f"{truth.size} labels for {len(values)} records.")
        return truth, self.vectors.vectors(values, np.ones(len(values)))
