"""The two bits that tell two labels apart: both count, in the law and in the draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.row import Finding, ratio_text
from curvote.mechanisms import bits
from curvote.mechanisms.alibi import ONE, Alibi
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.labels import PackedMechanism, SupportMechanism
from curvote.validate import FloatArray

SLACK = 1e-9


def check(mechanism: Mechanism) -> Finding:
    """Say whether the declared loss is that of both bits of two labels together.

    However many labels there are: from the law of two bits, as fractions.
    """
    why = None
    if isinstance(mechanism, SupportMechanism):
        own, other = mechanism.pair()
        if own / other != mechanism.worst_ratio():
            loss = float(own / other)
            why = f"both bits change by a ratio of {loss:.9g}, the declared one differs"
    elif isinstance(mechanism, Alibi):
        why = _numbers(mechanism)
    return Finding("pair", why)


def _numbers(mechanism: Alibi) -> str | None:
    """Compare with the noise of both numbers, each 1 away."""
    loss = 2 * ONE * mechanism.noise.rate
    if abs(loss - mechanism.worst_log_ratio()) <= SLACK * loss:
        return None
    return f"two numbers lose {loss:.9g} together, the declared loss differs"


def words(mechanism: Mechanism) -> dict[str, str]:
    """Return what the row of a label mechanism says of its worst pair."""
    if isinstance(mechanism, SupportMechanism):
        chances = zip(("1 0", "0 1"), mechanism.pair(), strict=True)
        return {"pair": ", ".join(f"{bits_}: {ratio_text(p)}" for bits_, p in chances)}
    if isinstance(mechanism, Alibi):
        rate = mechanism.noise.rate * ONE
        return {"pair": f"1 0: {rate:.9g}, 0 1: {-rate:.9g} in each logarithm"}
    return {}


def cells(mechanism: PackedMechanism, x: FloatArray, out: NDArray[Any]) -> FloatArray:
    """Return which of label and next label each output supports: 0 to 3, in bits."""
    labels = x.astype(np.int64)
    own, other = (
        bits.at(out, (labels + step) % mechanism.n_classes) for step in (0, 1)
    )
    return np.asarray(2.0 * own + other)


def shares(mechanism: PackedMechanism) -> FloatArray:
    """Return the declared probability of each of the four."""
    own, other = mechanism.pair()
    none, both = 1 - mechanism.p - other, mechanism.p - own
    return np.array([none, other, own, both], dtype=np.float64)
