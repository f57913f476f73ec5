"""Description of a user's classifier: kind, classes, columns, checked answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError, did_you_mean
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import predict_batched

# Records that are asked about a second time.
REPEATED_RECORDS: Final = 200


@dataclass(frozen=True)
class ModelDescription:
    """Description of a fitted classifier: kind, classes, columns in order."""

    kind: str
    classes: tuple[Any, ...]
    features: tuple[str, ...]


def describe_model(
    model: Any, features: Sequence[str] | None = None
) -> ModelDescription:
    """Return a model's description; ``features`` name columns it does not.

    UserError: no classifier, not fitted, one class only, several labels at once, no
    names, or names that are not the model's.
    """
    classes = _model_classes(model)
    return ModelDescription(
        _model_kind(model), classes, _model_features(model, features)
    )


def _model_kind(model: Any) -> str:
    """Return the names of a pipeline's steps, or of the model's own kind."""
    steps = [step for _, step in getattr(model, "steps", ())]
    kinds = [_model_kind(step) for step in steps if step not in (None, "passthrough")]
    return " + ".join(kinds) if kinds else type(model).__name__


def _model_classes(model: Any) -> tuple[Any, ...]:
    """Return the classes; a model that is no fitted classifier is a UserError."""
    from sklearn.base import BaseEstimator, is_regressor

    kind = type(model).__name__
    if not hasattr(model, "predict"):
        raise UserError(f"{kind} cannot predict; give a fitted classifier.")
    if isinstance(model, BaseEstimator) and is_regressor(model):
        raise UserError(
            f"{kind} is a regressor: its answers are numbers, which noise nearly always"
            " changes. Give a classifier."
        )
    _check_fitted(model, kind)
    names = getattr(model, "classes_", None)
    if names is None:
        raise UserError(f"{kind} names no classes (classes_); give a classifier.")
    if isinstance(names, list):
        raise UserError(f"{kind} answers several questions at once; give one of them.")
    classes = tuple(np.asarray(names).tolist())
    if len(classes) < 2:
        raise UserError(
            f"{kind} knows one class only, {classes[0]!r}: every answer is the same,"
            " whatever the noise. Fit it on records of two classes or more."
        )
    return classes


def _check_fitted(model: Any, kind: str) -> None:
    """Refuse a scikit-learn model that is not fitted."""
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
    except NotFittedError:
        raise UserError(f"{kind} is not fitted; fit it before you save it.") from None


def _model_features(model: Any, features: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the model's columns; without any a UserError."""
    model_names = getattr(model, "feature_names_in_", getattr(model, "columns", None))
    count = getattr(model, "n_features_in_", None)
    names = tuple(map(str, features)) if features else None
    if model_names is not None:
        return _match_names(tuple(map(str, model_names)), names)
    if names is None:
        count_text = f" of its {count} columns" if count else ""
        raise UserError(
            f"the model keeps no names{count_text} (it was fitted on an array): give"
            " them in"
            " the order of the fit, --features age,bmi,..."
        )
    if count not in (None, len(names)):
        raise UserError(
            f"--features names {len(names)} columns, the model has {count}."
        )
    if len(set(names)) < len(names):
        raise UserError("--features names a column twice.")
    return names


def _match_names(
    model_names: tuple[str, ...], names: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Return the model's own names, which ``names`` may repeat."""
    for name in names or ():
        if name not in model_names:
            raise UserError(
                f"the model has no column {name!r}.{did_you_mean(name, model_names)}"
            )
    if names not in (None, model_names):
        raise UserError(
            f"the model's columns are {','.join(model_names)}, in this order: leave out"
            " --features."
        )
    return model_names


def checked_answers(model: Any, records: FloatArray) -> NDArray[Any]:
    """Return the model's answers to ``records`` (n, D), (n,).

    UserError: it cannot answer, answers differently when it is asked twice (in another
    order, so that no record may depend on its neighbours), or says what is no class.
    """
    try:
        first = predict_batched(model, records)
        repeated = predict_batched(model, records[:REPEATED_RECORDS][::-1])[::-1]
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - a model's errors are of any kind
        words = f"{type(error).__name__}, {error}".strip().replace("\n", " ")
        raise UserError(
            f"the model cannot answer these records ({words}); if another version of"
            " its library fitted it, fit it again with this one."
        ) from None
    differ = int(np.count_nonzero(first[:REPEATED_RECORDS] != repeated))
    if differ:
        raise UserError(
            f"the model answers differently when asked twice ({differ} of"
            f" {len(repeated)} records): no agreement with a clean answer is defined."
            " Fix"
            " its random numbers (random_state), or ask about one record at a time."
        )
    unknown = sorted(set(first.tolist()) - set(np.asarray(model.classes_).tolist()))
    if unknown:
        raise UserError(
            f"the model answers {unknown[0]!r}, which is none of its classes"
            f" {', '.join(map(repr, np.asarray(model.classes_).tolist()))}."
        )
    return first


def constant_note(predictions: NDArray[Any], labels: NDArray[Any] | None) -> str | None:
    """Return a note where every answer is the same, else None.

    ``labels`` (n,), in the model's classes, tell the base rate.
    """
    values = np.unique(predictions)
    if len(values) > 1:
        return None
    (only,) = values.tolist()
    rate = (
        f"; {100 * np.mean(labels == only):.1f} % of the labels are {only!r}, too"
        if labels is not None
        else ""
    )
    return (
        f"every answer on the {len(predictions)} records is {only!r}: agreement would"
        " be 1 and"
        f" mean nothing{rate}. Look at a model that tells classes apart (class weights,"
        " another threshold)."
    )
