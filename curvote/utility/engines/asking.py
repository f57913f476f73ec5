"""Batched predictions of any model: rows in, class indices out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.validate import FloatArray

# No question to a model has more rows, or more numbers.
MOST_ROWS = 1 << 16
MOST_NUMBERS = 1 << 25


def model_input(model: Any, records: FloatArray) -> Any:
    """Return records (n, D) as the model takes them, named where it has names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return records
    import pandas as pd

    return pd.DataFrame(records, columns=list(names))


def batch_size(columns: int) -> int:
    """Return the number of rows of one batch."""
    return max(1, min(MOST_ROWS, MOST_NUMBERS // columns))


def predict_batched(model: Any, records: FloatArray) -> NDArray[Any]:
    """Return the model's answers to records (n, D), (n,), asked a batch at a time.

    UserError where it does not give one answer for each record.
    """
    size = batch_size(records.shape[1])
    batches = [records[at : at + size] for at in range(0, len(records), size)]
    answers = [np.asarray(model.predict(model_input(model, rows))) for rows in batches]
    for rows, batch_answers in zip(batches, answers, strict=True):
        if batch_answers.shape != (len(rows),):
            raise UserError(
                f"`predict` of {type(model).__name__} gave {batch_answers.shape} for"
                f" {len(rows)} rows; it must give one class for each row."
            )
    return np.concatenate(answers)


def classes_of(model: Any, answers: NDArray[Any]) -> NDArray[Any]:
    """Return the classes in order: the model's own, else those among its answers."""
    model_classes = getattr(model, "classes_", None)
    return np.unique(answers) if model_classes is None else np.asarray(model_classes)


def class_indices(classes: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.int64]:
    """Return each answer's index among the classes, -1 for none of them."""
    order = np.argsort(classes, kind="stable")
    positions = np.searchsorted(classes, answers, sorter=order).clip(
        max=len(classes) - 1
    )
    indices = order[positions]
    return np.where(classes[indices] == answers, indices, -1).astype(np.int64)


def predict_indices(model: Any, records: FloatArray) -> NDArray[np.int64]:
    """Return the class indices of the answers to records (n, D), (n,)."""
    answers = predict_batched(model, records)
    return class_indices(classes_of(model, answers), answers)
