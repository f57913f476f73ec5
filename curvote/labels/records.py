"""Inputs of a fit: public records, and labels, plain or as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from curvote import validate
from curvote.errors import UserError
from curvote.representation.functional import refuse_curves
from curvote.validate import FloatArray

_NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal")
_MOST_NAMES = 8


def training_records(model: Any, X: Any) -> FloatArray:
    """Return the records (n, d) that ``model`` learns from, and keep their columns.

    Text, NaN and infinite values are UserErrors, each with its column or place.
    """
    refuse_curves(X)
    _refuse_text(X)
    return _finite_numbers(validate_data(model, X, **_VALIDATION))


def further_records(model: Any, X: Any, name: str = "X") -> FloatArray:
    """Return further records (n, d), their columns in the order that was learned.

    The columns of a DataFrame are found by name; a missing one and one that was not
    learned are UserErrors.
    """
    refuse_curves(X)
    _refuse_text(X)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and isinstance(X, pd.DataFrame):
        X = X[_match_columns(names.tolist(), list(X.columns), name)]
    return _finite_numbers(validate_data(model, X, reset=False, **_VALIDATION))


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some records of a DataFrame or an array."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


_VALIDATION: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False}


def _finite_numbers(values: Any) -> FloatArray:
    return validate.finite(X=values)


def _refuse_text(X: Any) -> None:
    if not isinstance(X, pd.DataFrame):
        return
    texts = [str(name) for name, column in X.items() if not _is_numeric(column)]
    if texts:
        raise UserError(
            f"X holds text or categories in {_list_columns(texts)}; give a column of 0"
            " and 1"
            " for each public category instead."
        )


def _is_numeric(column: pd.Series[Any]) -> bool:
    if column.dtype == object:
        return pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS
    return bool(pd.api.types.is_numeric_dtype(column.dtype))


def _match_columns(expected: list[str], names: list[str], owner: str) -> list[str]:
    missing = [name for name in expected if name not in names]
    extra = [str(name) for name in names if name not in expected]
    if missing or extra or len(names) != len(expected):
        problems = [f"lacks {_list_columns(missing)}"] if missing else []
        problems += [
            f"has {_list_columns(extra)}, which the model did not learn"
        ] * bool(extra)
        problems = problems or ["has a column twice"]
        raise UserError(f"{owner} {' and '.join(problems)}; columns are found by name.")
    return expected


def _list_columns(names: list[str]) -> str:
    text = ", ".join(names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"column{'s' * (len(names) > 1)} {text}{more}"
