"""The table ``weak`` of classifiers that no learner fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.protocols.mrma.arms import WEAK_ARMS
from curvote.protocols.stage import Columns

Array = NDArray[np.float64]


def weak_rows(coef: Array, intercept: Array, n: int) -> Columns:
    """Return the rows of coef (B, d) and intercept (B,), each from ``n`` reports."""
    count = len(coef)
    return {
        "arm": np.full(count, WEAK_ARMS.index("weak"), dtype=np.int8),
        "learner": np.arange(count),
        "coef": coef,
        "intercept": intercept,
        "n": np.full(count, n),
        "flagged": np.zeros(count, dtype=bool),
    }
