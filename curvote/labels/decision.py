"""From probabilities to one class: for accuracy, or as if all classes were as many."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from curvote.validate import FloatArray

ACCURACY, BALANCED = "accuracy", "balanced"
DECIDE = (ACCURACY, BALANCED)
# Sums of the same numbers in another order differ by less.
_EQUAL = 1e-9


def likeliest(proba: FloatArray, X: FloatArray, seed: int) -> NDArray[np.int64]:
    """Return the place of the largest entry of each row (n, K); ties fall at random.

    What decides a tie is drawn from the seed and the record's features (n, d), so that
    a record gets the same class in whatever company (VEC eq. 16).
    """
    places = proba.argmax(axis=1)
    most = np.take_along_axis(proba, places[:, None], axis=1)
    level = proba >= most * (1 - _EQUAL)
    for row in np.flatnonzero(level.sum(axis=1) > 1):
        rng = np.random.default_rng([seed, crc32(X[row].tobytes())])
        places[row] = rng.choice(np.flatnonzero(level[row]))
    return np.asarray(places)


def floored(share: FloatArray, se: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the shares (K,) that a balanced decision divides by, all above 0."""
    return np.maximum(share, expected / 2)
