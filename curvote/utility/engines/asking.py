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


def rows_at_once(columns: int) -> int:
    """Return how many rows of so many columns are asked at once."""
    return max(1, min(MOST_ROWS, MOST_NUMBERS // columns))


def told(model: Any, rows: FloatArray) -> NDArray[Any]:
    """Return the model's answers to ``rows`` (n, D), (n,), asked a batch at a time.

    A model that was fitted on named columns is given names. UserError where it does
    not give one answer for each row.
    """
    size = rows_at_once(rows.shape[1])
    starts = range(0, len(rows), size)
    answers = [np.asarray(_told(model, rows[at : at + size])) for at in starts]
    if any(each.ndim != 1 for each in answers) or sum(map(len, answers)) != len(rows):
        raise UserError(
            f"`predict` of {type(model).__name__} gave {answers[0].shape} for"
            f" {len(rows[:size])} rows; it must give one class for each row."
        )
    return np.concatenate(answers)


def _told(model: Any, rows: FloatArray) -> Any:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return model.predict(rows)
    import pandas as pd

    return model.predict(pd.DataFrame(rows, columns=list(names)))


def classes_of(model: Any, answers: NDArray[Any]) -> NDArray[Any]:
    """Return the classes in order: the model's own, else those among its answers."""
    own = getattr(model, "classes_", None)
    return np.unique(answers) if own is None else np.asarray(own)


def places(classes: NDArray[Any], answers: NDArray[Any]) -> NDArray[np.int64]:
    """Return each answer's place among the classes; what is none of them is at -1."""
    order = np.argsort(classes, kind="stable")
    found = np.searchsorted(classes, answers, sorter=order).clip(max=len(classes) - 1)
    at = order[found]
    return np.where(classes[at] == answers, at, -1).astype(np.int64)
