"""Linear classifiers of more than two classes, as scikit-learn fits them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NEVER = float(np.finfo(np.float64).min)


def scores(
    model: Any, z: Array, places: NDArray[np.int64], n_classes: int
) -> tuple[Array, Array]:
    """Return the scores coef (K, d) and intercept (K,) of a linear ``model``.

    It is fitted to records ``z`` (n, d) with labels (n,) that are places of K classes.
    A class that none of them has never wins.
    """
    there = np.unique(places)
    coef, intercept = np.zeros((n_classes, z.shape[1])), np.full(n_classes, NEVER)
    if len(there) == 1:
        intercept[there] = 0.0
        return coef, intercept
    model.fit(z, places)
    # Of two classes scikit-learn has one score: that of the second.
    signs = np.array([[-1.0], [1.0]]) if len(there) == 2 else np.ones((1, 1))
    coef[there] = signs * model.coef_
    intercept[there] = np.ravel(signs * model.intercept_)
    return coef, intercept
