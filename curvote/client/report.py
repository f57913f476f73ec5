"""Reports of training clients and votes of evaluation clients, noised once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget, label_budget_share
from curvote.curves.encoding import decision_sign
from curvote.mechanisms import factory
from curvote.mechanisms.base import ScalarMechanism, VectorMechanism
from curvote.mechanisms.coordinates import per_coordinate
from curvote.mechanisms.factory import make
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.wire.task import Task

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
        return cls(
            features=_feature_mechanism(mechanism, d, features.epsilon, params or {}),
            label=BinaryRR(epsilon=label.epsilon),
        )

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
        mapped = (
            self._to_domain(first[0]),
            self._to_domain(second[0]),
            self._to_output(at["z"]),
        )
        loss = self.features.log_ratio(*mapped)
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


def _feature_mechanism(
    name: str, d: int, epsilon: float, params: Mapping[str, Any]
) -> VectorMechanism:
    kind = factory.mechanism_class(name)
    if issubclass(kind, ScalarMechanism) and kind is not BinaryRR:
        return per_coordinate(name, d, epsilon, **params)
    if issubclass(kind, VectorMechanism):
        return cast("VectorMechanism", make(name, epsilon=epsilon, d=d, **params))
    raise UserError(
        f"mechanism is {name!r}, which takes labels; the numbers of a report need"
        " another."
    )


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
