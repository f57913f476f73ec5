"""For any mechanism: a sampler that spends twice what the declared law says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.mechanism_subject import MechanismSubject, built
from curvote.entropy import Entropy
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.making import make
from curvote.validate import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Doubled(MechanismSubject):
    """Declares the law of one mechanism and draws from another."""

    secret: Mechanism

    def send(self, many: FloatArray, entropy: Entropy) -> NDArray[Any]:
        """Return the outputs of clients who hold ``many``, a row each."""
        return self.secret.randomize(many, entropy)

    def release(self, given: Any, entropy: Entropy) -> bytes:
        """Return the bytes that the secret mechanism makes of ``given``."""
        return np.asarray(self.secret.randomize(given, entropy)).tobytes()


def doubled(name: str, epsilon: float) -> Doubled:
    """Return the mechanism ``name`` that claims epsilon and spends twice as much."""
    honest, secret = built(name, epsilon), built(name, 2 * epsilon)
    params: Mapping[str, Any] = honest.params
    return Doubled(
        honest.mechanism,
        "",
        params,
        honest.budget,
        secret=make(name, epsilon=2 * epsilon, **secret.params),
    )
