"""Class codes, and unit vectors of records and gradients that clients report.

Of K classes the corners are unit vectors of K - 1 numbers whose sum is 0, so that
sum_k l_k l_k' = K/(K - 1) I. Of two they are -1 and +1.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.classes import class_indices

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def simplex_codes(n_classes: int) -> Array:
    """Return the codes of all classes, corners of a simplex, (K, K - 1)."""
    validate.at_least(2, n_classes=n_classes)
    points = np.array([[-1.0], [1.0]])
    for count in range(2, n_classes):
        low = -1 / count
        moved = np.column_stack([points * np.sqrt(1 - low**2), np.full(count, low)])
        points = np.vstack([moved, np.eye(1, count, count - 1)])
    points.setflags(write=False)
    return points


def class_codes(labels: ArrayLike, n_classes: int) -> Array:
    """Return the codes (n, K - 1) of labels (n,)."""
    return np.asarray(simplex_codes(n_classes)[class_indices(labels, n_classes)])


def are_class_codes(rows: Array, n_classes: int) -> bool:
    """Return whether each row of (n, K - 1) is exactly a class code."""
    corner_rows = simplex_codes(n_classes)
    if rows.ndim != 2 or rows.shape[1] != n_classes - 1:
        return False
    nearest = corner_rows[(rows @ corner_rows.T).argmax(axis=1)]
    return bool((nearest == rows).all())
