"""The code of a class: a corner of a regular simplex, as far from any other as can be.

Of K classes the corners are unit vectors of K - 1 numbers whose sum is 0, so that
sum_k l_k l_k' = K/(K - 1) I. Of two they are -1 and +1.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.classes import places

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def corners(n_classes: int) -> Array:
    """Return the corners, (K, K - 1); fewer than two classes are a UserError."""
    validate.at_least(2, n_classes=n_classes)
    made = np.array([[-1.0], [1.0]])
    for known in range(2, n_classes):
        low = -1 / known
        moved = np.column_stack([made * np.sqrt(1 - low**2), np.full(known, low)])
        made = np.vstack([moved, np.eye(1, known, known - 1)])
    made.setflags(write=False)
    return made


def codes(labels: ArrayLike, n_classes: int) -> Array:
    """Return the corners (n, K - 1) of labels (n,): places of classes, or UserError."""
    return np.asarray(corners(n_classes)[places(labels, n_classes)])


def are_codes(given: Array, n_classes: int) -> bool:
    """Say whether each row of (n, K - 1) is a corner, to the last bit."""
    known = corners(n_classes)
    if given.ndim != 2 or given.shape[1] != n_classes - 1:
        return False
    nearest = known[(given @ known.T).argmax(axis=1)]
    return bool((nearest == given).all())
