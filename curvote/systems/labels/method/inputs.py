"""Inputs of a fit: public records, and labels, plain or as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from curvote.base import validate
from curvote.base.entropy import Entropy, random_sources
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.release_counter import Counts, ReleaseCounter, one_release_each
from curvote.base.validate import FloatArray
from curvote.curves.columns import refuse_curves
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.codes.encoders import AUTO, mechanism_name
from curvote.systems.labels.codes.encoding import ROUNDS_ENCODER, TwoRounds, encode
from curvote.systems.labels.codes.places import places_of
from curvote.systems.labels.codes.predictions import (
    check_same_classes,
    check_same_length,
)

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


LP_2ST = "lp_2st"
_SECOND_ROUND = "rr_with_prior"


def check_labels(y: Any, n: int) -> Any:
    """Return labels (n,), one a record; anything else is a UserError."""
    if y is None:
        raise UserError(
            "fit requires y to be passed, but the target y is None; give labels (n,)"
            " or Codes."
        )
    if not hasattr(getattr(y, "cat", y), "categories"):  # pandas' keep their order
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if y.dtype.kind == "f":  # what a regression learns is no class
            check_classification_targets(y)
    if len(y) != n:
        raise UserError(f"X has {n} records, and y {len(y)} labels; each has one.")
    return y


def matching_codes(codes: Codes, classes: Any, epsilon: float, encoder: str) -> Codes:
    """Return the codes if they match the model's classes, epsilon and encoder.

    Otherwise a UserError that names both. ``auto`` takes the codes of any encoder.
    """
    if classes is not None:
        check_same_classes("model", classes, codes)
    if codes.epsilon != epsilon:
        raise UserError(
            f"the codes are of epsilon {codes.epsilon:g}, the model states"
            f" {epsilon:g}; give it the epsilon of its codes."
        )
    required = _SECOND_ROUND if encoder == LP_2ST else encoder
    if required in {AUTO, codes.encoder}:
        return codes
    if mechanism_name(required, codes.n_classes, epsilon) != codes.encoder:
        raise UserError(
            f"the codes are of encoder {codes.encoder}, the model states {encoder}."
        )
    return codes


class CodeCollector(ReleaseCounter):
    """A scikit-learn class whose ``fit`` takes `Codes`, or draws them from labels.

    ``spent_`` is what a label of all those fits has spent, ``releases_`` and
    ``private_`` are those of `ReleaseCounter`; all are None where only codes came.
    """

    alternative = "Draw codes once, by encode, and give them to PrivateSearchCV."
    spent_: Budget | None = None
    releases_: Counts | None = None
    private_: bool | None = None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on plain labels y (n,); `private_score` takes codes."""
        if isinstance(y, Codes):
            raise UserError(
                "y holds codes, which are no labels; write private_score(model, X,"
                " codes), or choose by PrivateSearchCV."
            )
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]

    def _random_sources(self) -> tuple[np.random.Generator, Entropy]:
        """Return the server's generator, and the source of the labels' noise."""
        return random_sources(self.random_state)

    def _collect_codes(
        self,
        model: Any,
        X: FloatArray,
        y: Any,
        rng: np.random.Generator,
        entropy: Entropy,
    ) -> Codes:
        """Return the given codes, or codes drawn from plain labels.

        Both must be of the ``classes``, ``epsilon`` and ``encoder`` of ``model``.
        """
        if isinstance(y, Codes):
            check_same_length(len(X), y)
            return matching_codes(y, model.classes, model.epsilon, model.encoder)
        labels = check_labels(y, len(X))
        classes, places = places_of(labels, model.classes)
        self._refuse_few_labels(model, len(X), len(classes))
        if model.encoder == LP_2ST:
            rounds = TwoRounds(classes[places], classes, model.epsilon, entropy)
            return self._collect_in_two_rounds(model, X, rounds, rng)
        codes = encode(labels, model.classes, model.epsilon, model.encoder, entropy)
        self._record_spending(Budget(codes.epsilon), one_release_each(len(X)))
        return codes

    def _refuse_few_labels(self, model: Any, n: int, k: int) -> None:
        """Refuse ``n`` labels of ``k`` classes that would be spent in vain."""

    def _collect_in_two_rounds(
        self, model: Any, X: FloatArray, rounds: TwoRounds, rng: np.random.Generator
    ) -> Codes:
        first_model = clone(model).set_params(
            classes=rounds.classes, encoder=ROUNDS_ENCODER
        )

        def learn_prior(
            first: NDArray[np.intp], codes: Codes, second: NDArray[np.intp]
        ) -> FloatArray:
            return np.asarray(first_model.fit(X[first], codes).predict_proba(X[second]))

        batches = rounds.codes(rng.permutation(len(X)), learn_prior)
        self._record_spending(Budget(next(batches).epsilon), one_release_each(len(X)))
        return next(batches)
