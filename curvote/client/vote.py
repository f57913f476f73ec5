"""The vote of an evaluation client: one randomized bit, "this classifier was right"."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.classifier import sign
from curvote.entropy import Entropy
from curvote.mechanisms.binary_rr import BinaryRR

Array = NDArray[np.float64]


def decisions(
    features: Array, coef: Array, intercept: Array, judge: NDArray[np.int64]
) -> Array:
    """Return f_b(x_i), with b = ``judge[i]`` the one classifier that client i judges.

    ``features`` (n, d), ``coef`` (B, d), ``intercept`` (B,), ``judge`` (n,).
    """
    products = np.einsum("nd,nd->n", features, coef[judge])
    return np.asarray(products + intercept[judge])


def vote(
    decision: Array, labels: Array, epsilon: float, entropy: Entropy
) -> NDArray[np.bool_]:
    """Return one noised bit a client: was sign(f(x)) the true label? (MRMA eqs 6, 7).

    A client's whole ``epsilon`` goes into this bit; f(x) = 0 predicts -1. A label other
    than -1 and +1 is a UserError, and nothing is drawn.
    """
    mechanism = BinaryRR(epsilon=epsilon)
    labels, _ = mechanism.clip(labels)
    right = np.where(sign(decision) == labels, 1.0, -1.0)
    return mechanism.randomize(right, entropy) > 0
