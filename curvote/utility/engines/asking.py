"""Asking a model of any kind: rows in, places of classes out, bounded in size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.validate import FloatArray

# No question to a model has more rows, or more numbers.
MOST_ROWS = 1 << 16
MOST_NUMBERS = 1 << 25


def table(model: Any, records: FloatArray) -> Any:
    """Return records (n, D) as the model takes them: a table if it knows names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return records
    import pandas as pd

    return pd.DataFrame(records, columns=list(names))


def rows_at_once(columns: int) -> int:
    """Return how many rows of so many columns are asked at once."""
    return max(1, min(MOST_ROWS, MOST_NUMBERS // columns))


def told(model: Any, records: FloatArray) -> NDArray[Any]:
    """Return the model's answers to records (n, D), (n,), asked a batch at a time.

    UserError where it does not give one answer for each record.
    """
    size = rows_at_once(records.shape[1])
    batches = [records[at : at + size] for at in range(0, len(records), size)]
    answers = [np.asarray(model.predict(table(model, rows))) for rows in batches]
    for rows, given in zip(batches, answers, strict=True):
        if given.shape != (len(rows),):
            raise UserError(
                f"`predict` of {type(model).__name__} gave {given.shape} for"
                f" {len(rows)} rows; it must give one class for each row."
            )
    return np.concatenate(answers)


def classes_of(model: Any, answers: NDArray[Any]) -> NDArray[Any]:
    """Return the classes in order: the model's own, else those among its answers."""
    own = getattr(model, "classes_", None)
    return np.unique(answers) if own is None else np.asarray(own)


def placed(classes: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.int64]:
    """Return each answer's place among the classes; what is none of them is at -1."""
    order = np.argsort(classes, kind="stable")
    found = np.searchsorted(classes, answers, sorter=order).clip(max=len(classes) - 1)
    at = order[found]
    return np.where(classes[at] == answers, at, -1).astype(np.int64)


def places(model: Any, records: FloatArray) -> NDArray[np.int64]:
    """Return the places in ``classes_`` of the answers to records (n, D), (n,)."""
    answers = told(model, records)
    return placed(classes_of(model, answers), answers)
