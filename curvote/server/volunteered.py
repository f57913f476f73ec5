"""A classifier from public, labelled records alone: ridge logistic regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Line = tuple[Array, float]

# The penalty is |coef|^2/2 beside the sum of losses: a slope of z, whose scale is
# public, is expected to be a standard normal number. Fixed, so that nothing is tuned.
PENALTY = 1.0


def logistic(z: Array, places: NDArray[np.int64]) -> Line:
    """Return (coef (d,), intercept) for records ``z`` (n, d) with labels (n,) 0 or 1.

    Where all have one label it is the constant classifier that names it.
    """
    from sklearn.linear_model import LogisticRegression  # takes a second

    if len(np.unique(places)) < 2:
        return np.zeros(z.shape[1]), float(2 * places[0] - 1)
    made = LogisticRegression(C=1 / PENALTY, max_iter=1000).fit(z, places)
    return made.coef_[0], float(made.intercept_[0])
