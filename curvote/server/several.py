"""Classifiers from volunteers' public records, alone or joined with reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LOWEST_SCORE = float(np.finfo(np.float64).min)


def class_scores(
    model: Any, z: Array, places: NDArray[np.int64], n_classes: int
) -> tuple[Array, Array]:
    """Return the scores coef (K, d) and intercept (K,) of a linear ``model``.

    It is fitted to records ``z`` (n, d) with labels (n,) that are places of K classes.
    A class that none of them has never wins.
    """
    present = np.unique(places)
    coef, intercept = (
        np.zeros((n_classes, z.shape[1])),
        np.full(n_classes, LOWEST_SCORE),
    )
    if len(present) == 1:
        intercept[present] = 0.0
        return coef, intercept
    model.fit(z, places)
    # Of two classes scikit-learn has one score: that of the second.
    signs = np.array([[-1.0], [1.0]]) if len(present) == 2 else np.ones((1, 1))
    coef[present] = signs * model.coef_
    intercept[present] = np.ravel(signs * model.intercept_)
    return coef, intercept
