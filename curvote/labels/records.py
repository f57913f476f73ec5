"""Records as a model takes them: columns by name, numbers only, none missing."""

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


def learned(model: Any, X: Any) -> FloatArray:
    """Return the records (n, d) that ``model`` learns from, and keep their columns.

    Text, NaN and infinite values are UserErrors, each with its column or place.
    """
    refuse_curves(X)
    _refuse_text(X)
    return _numbers(validate_data(model, X, **_ANY))


def known(model: Any, X: Any, called: str = "X") -> FloatArray:
    """Return further records (n, d), their columns in the order that was learned.

    The columns of a DataFrame are found by name; a missing one and one that was not
    learned are UserErrors.
    """
    refuse_curves(X)
    _refuse_text(X)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and isinstance(X, pd.DataFrame):
        X = X[_same_names(names.tolist(), list(X.columns), called)]
    return _numbers(validate_data(model, X, reset=False, **_ANY))


def rows_of(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some records of a DataFrame or an array."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


_ANY: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False}


def _numbers(values: Any) -> FloatArray:
    return validate.finite(X=values)


def _refuse_text(X: Any) -> None:
    if not isinstance(X, pd.DataFrame):
        return
    texts = [str(name) for name, column in X.items() if not _of_numbers(column)]
    if texts:
        raise UserError(
            f"X holds text or categories in {_listed(texts)}; give a column of 0 and 1"
            " for each public category instead."
        )


def _of_numbers(column: pd.Series[Any]) -> bool:
    if column.dtype == object:
        return pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS
    return bool(pd.api.types.is_numeric_dtype(column.dtype))


def _same_names(wanted: list[str], given: list[str], called: str) -> list[str]:
    missing = [name for name in wanted if name not in given]
    extra = [str(name) for name in given if name not in wanted]
    if missing or extra or len(given) != len(wanted):
        said = [f"lacks {_listed(missing)}"] if missing else []
        said += [f"has {_listed(extra)}, which the model did not learn"] * bool(extra)
        said = said or ["has a column twice"]
        raise UserError(f"{called} {' and '.join(said)}; columns are found by name.")
    return wanted


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"column{'s' * (len(names) > 1)} {shown}{more}"
