"""Public records that a model learns from or is asked about, checked in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.curves.columns import refuse_curves

_MOST_NAMES = 8


def training_records(model: Any, X: Any) -> FloatArray:
    """Return the records (n, d) that ``model`` learns from, and keep their columns.

    Text, NaN and infinite values are UserErrors, each with its column or place; so are
    a single record, numbers whose squares are none, and whatever is no table.
    """
    refuse_curves(X)
    _refuse_text(X)
    records = _numbers(model, X)
    if len(records) < 2:
        raise UserError("X has one record (n_samples = 1); it takes two to learn.")
    return records


def further_records(model: Any, X: Any, name: str = "X") -> FloatArray:
    """Return further records (n, d), their columns in the order that was learned.

    The columns of a DataFrame are found by name; a missing one and one that was not
    learned are UserErrors.
    """
    refuse_curves(X)
    _refuse_text(X)
    learned = getattr(model, "feature_names_in_", None)
    if learned is not None and isinstance(X, pd.DataFrame):
        missing = [column for column in learned if column not in X]
        extra = [str(column) for column in X if column not in learned]
        if missing or extra:
            problems = [f"lacks {_list_columns(missing)}"] if missing else []
            if extra:
                listed = _list_columns(extra)
                problems.append(f"has {listed}, which the model did not learn")
            problem = " and ".join(problems)
            raise UserError(f"{name} {problem}; columns are found by name.")
        X = X[learned.tolist()]
    return _numbers(model, X, reset=False)


# Distances are made of squares, which must be numbers.
_LARGEST = 1e100


def _numbers(model: Any, X: Any, **options: Any) -> FloatArray:
    try:
        records = validate_data(
            model, X, dtype=np.float64, ensure_all_finite=False, **options
        )
    except ValueError as error:
        raise UserError(str(error)) from None
    records = validate.finite(X=records)
    largest = np.abs(records).max()
    if largest > _LARGEST:
        raise UserError(
            f"X holds a number as large as {largest:.3g}; give features within"
            f" {_LARGEST:g}, in other units."
        )
    return records


def _refuse_text(X: Any) -> None:
    if not isinstance(X, pd.DataFrame):
        return
    kinds = X.convert_dtypes().dtypes.items()
    is_number = pd.api.types.is_numeric_dtype
    texts = [str(name) for name, kind in kinds if not is_number(kind)]
    if texts:
        raise UserError(
            f"X holds text or categories in {_list_columns(texts)}; give a column of 0"
            " and 1 for each public category instead."
        )


def _list_columns(names: list[str]) -> str:
    text = ", ".join(names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"column{'s' * (len(names) > 1)} {text}{more}"
