"""Labels of scikit-learn's users, and the absence of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets

from curvote.errors import UserError


class WithoutProbabilities:
    """A classifier whose scores are no probabilities, and that says why."""

    @property
    def predict_proba(self) -> Any:
        """Refuse: no probability read from noised reports is calibrated."""
        raise AttributeError(
            "predict_proba is absent: scores are read from noised reports, whose noise"
            " makes them no calibrated probabilities. Use predict or decision_function."
        )


def encode_labels(y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes in sorted order (K,), and the place of each label (n,)."""
    try:
        check_classification_targets(y)
        classes, places = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in np.asarray(y).ravel()})
        raise UserError(
            f"y mixes labels of the kinds {', '.join(kinds)}; give one kind, and leave"
            " out rows without a label."
        ) from None
    return classes, places
