"""Asking a model for its answers, under the names of columns that it was fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.validate import FloatArray


def table(model: Any, records: FloatArray) -> Any:
    """Return records (n, D) as the model takes them: a table if it knows names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return records
    import pandas as pd

    return pd.DataFrame(records, columns=list(names))


def places(model: Any, records: FloatArray) -> NDArray[np.int64]:
    """Return the places in ``classes_`` of the answers to records (n, D), (n,)."""
    classes = np.asarray(model.classes_)
    answers = np.asarray(model.predict(table(model, records)))
    order = np.argsort(classes)
    return np.asarray(order[np.searchsorted(classes[order], answers)], dtype=np.int64)
