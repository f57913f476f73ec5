"""A classifier from public, labelled records alone: ridge logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.server.several import scores

Array = NDArray[np.float64]
Line = tuple[Array, Any]

# The penalty is |coef|^2/2 beside the sum of losses: a slope of z, whose scale is
# public, is expected to be a standard normal number. Fixed, so that nothing is tuned.
PENALTY = 1.0


def logistic(z: Array, places: NDArray[np.int64], n_classes: int = 2) -> Line:
    """Return (coef, intercept) for records ``z`` (n, d) with labels (n,) from 0.

    Of two classes coef is (d,), of more a score for each: (K, d) and (K,). Where all
    have one label it is the constant classifier that names it.
    """
    from sklearn.linear_model import LogisticRegression  # takes a second

    model = LogisticRegression(C=1 / PENALTY, max_iter=1000)
    if n_classes > 2:
        return scores(model, z, places, n_classes)
    if len(np.unique(places)) < 2:
        return np.zeros(z.shape[1]), float(2 * places[0] - 1)
    model.fit(z, places)
    return model.coef_[0], float(model.intercept_[0])
