"""A training client's report: noised features and a noised label, released once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.mechanisms import make, per_coordinate
from curvote.mechanisms.base import Mechanism
from curvote.privacy import Budget, label_share
from curvote.task import Task

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reporter:
    """The two randomizers of a report (MRMA section 5.1, eqs 13 and 14).

    The whole record (z, y) is epsilon-LDP: sequential composition of the ``features``
    mechanism, which splits its budget over the d coordinates, and of the ``label``'s.
    """

    features: Mechanism
    label: Mechanism

    @classmethod
    def build(
        cls, d: int, epsilon: float, mechanism: str, share: float | str
    ) -> Reporter:
        """Split ``epsilon``: the label's ``share``, the rest for d coordinates."""
        label, features = Budget(epsilon).split(label_share(share, d))
        return cls(
            features=per_coordinate(mechanism, d, features.epsilon),
            label=make("binary_rr", epsilon=label.epsilon),
        )

    @classmethod
    def of(cls, task: Task) -> Reporter:
        """Return the reporter that a published task asks for."""
        return cls.build(
            task.encoding.d, task.epsilon, task.mechanism, task.label_share
        )

    def release(
        self, z: Array, labels: Array, noise: Entropy, label_noise: Entropy
    ) -> tuple[Array, Array]:
        """Release ``z`` (n, d) in [-1, 1] and ``labels`` (n,) in -1/+1, a row a client.

        A NaN or an unknown label is a UserError and nothing is released.
        """
        if len(z) != len(labels):
            raise UserError(f"{len(z)} rows of z but {len(labels)} labels.")
        # Both are checked before either is drawn: half a report would cost as much.
        try:
            z, _ = self.features.clip(z)
            labels, _ = self.label.clip(labels)
        except UserError as error:
            raise UserError(f"{error} Nothing was released.") from None
        noised = self.features.randomize(z, noise)
        return noised, self.label.randomize(labels, label_noise)
