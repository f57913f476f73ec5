"""Vote of an evaluation client: one randomized bit on a classifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.classifier import decision_sign
from curvote.entropy import Entropy
from curvote.mechanisms.binary_rr import BinaryRR

Array = NDArray[np.float64]


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
