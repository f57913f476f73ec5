"""Pairs of labels: both bits that tell two labels apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.row import Finding, ratio_text
from curvote.mechanisms import bits
from curvote.mechanisms.alibi import ONE_HOT_STEPS, Alibi
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.labels import PackedMechanism, SupportMechanism
from curvote.validate import FloatArray

PAIR_SLACK = 1e-9


def check_pair(mechanism: Mechanism) -> Finding:
    """Check that the declared loss is that of both bits of two labels.

    However many labels there are: from the law of two bits, as fractions.
    """
    why = None
    if isinstance(mechanism, SupportMechanism):
        own_bit, other_bit = mechanism.pair()
        if own_bit / other_bit != mechanism.worst_ratio():
            loss = float(own_bit / other_bit)
            why = f"both bits change by a ratio of {loss:.9g}, the declared one differs"
    elif isinstance(mechanism, Alibi):
        why = _check_numbers(mechanism)
    return Finding("pair", why)


def _check_numbers(mechanism: Alibi) -> str | None:
    """Compare with the noise of both numbers of two labels."""
    loss = 2 * ONE_HOT_STEPS * mechanism.noise.rate
    if abs(loss - mechanism.worst_log_ratio()) <= PAIR_SLACK * loss:
        return None
    return f"two numbers lose {loss:.9g} together, the declared loss differs"


def pair_details(mechanism: Mechanism) -> dict[str, str]:
    """Return the details of a label mechanism's worst pair for its row."""
    if isinstance(mechanism, SupportMechanism):
        chances = zip(("1 0", "0 1"), mechanism.pair(), strict=True)
        return {"pair": ", ".join(f"{bits_}: {ratio_text(p)}" for bits_, p in chances)}
    if isinstance(mechanism, Alibi):
        rate = mechanism.noise.rate * ONE_HOT_STEPS
        return {"pair": f"1 0: {rate:.9g}, 0 1: {-rate:.9g} in each logarithm"}
    return {}


def pair_outcomes(
    mechanism: PackedMechanism, x: FloatArray, out: NDArray[Any]
) -> FloatArray:
    """Return which of label and next label each output supports, 0 to 3."""
    labels = x.astype(np.int64)
    own_bits, other_bits = (
        bits.bit_at(out, (labels + step) % mechanism.n_classes) for step in (0, 1)
    )
    return np.asarray(2.0 * own_bits + other_bits)


def outcome_shares(mechanism: PackedMechanism) -> FloatArray:
    """Return the declared probability of each of the four outcomes."""
    own_share, other_share = mechanism.pair()
    none, both_share = 1 - mechanism.p - other_share, mechanism.p - own_share
    return np.array([none, other_share, own_share, both_share], dtype=np.float64)
