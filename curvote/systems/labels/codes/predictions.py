"""Predictions of a model in the order of the codes' classes, and score estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.base.validate import FloatArray, finite
from curvote.systems.labels.codes.codes import Codes


@dataclass(frozen=True)
class Predictions:
    """The place of each record's predicted class (n,), and probabilities (n, K)."""

    places: NDArray[np.int64]
    proba: FloatArray

    def __getitem__(self, rows: Any) -> Predictions:
        """Return the predictions for some records."""
        return Predictions(self.places[rows], self.proba[rows])


def predictions_of(model: Any, X: Any, codes: Codes) -> Predictions:
    """Return a fitted classifier's predictions for ``X``, or those that it states.

    Another number of records than of codes, and other classes, are a UserError.
    """
    if not hasattr(model, "predict_proba"):
        proba = _check_shape(finite(model=model), codes)
        return Predictions(proba.argmax(axis=1), proba)
    check_same_classes("model", model.classes_, codes)
    if hasattr(model, "predict_both"):
        predictions: Predictions = model.predict_both(X)
        _check_shape(predictions.proba, codes)
        return predictions
    proba = _check_shape(np.asarray(model.predict_proba(X), dtype=np.float64), codes)
    order = np.argsort(codes.classes, kind="stable")
    places = np.searchsorted(codes.classes[order], model.predict(X))
    return Predictions(order[places], proba)


def check_same_classes(owner: str, classes: Any, codes: Codes) -> None:
    """Refuse codes of other classes than the model's, or in another order."""
    class_names = np.asarray(classes)
    if len(class_names) != codes.n_classes:
        raise UserError(
            f"the codes are of {codes.n_classes} classes, the {owner} has"
            f" {len(class_names)}."
        )
    if not np.array_equal(class_names, codes.classes):
        raise UserError(
            f"the codes are of the classes {_list_names(codes.classes)}; the {owner}"
            f" has {_list_names(class_names)}."
        )


def check_same_length(n: int, codes: Codes) -> None:
    """Refuse codes that are not one for each record."""
    if n != len(codes):
        raise UserError(
            f"X has {n} records, and there are {len(codes)} codes; each record has one."
        )


def _check_shape(proba: FloatArray, codes: Codes) -> FloatArray:
    check_same_length(len(proba), codes)
    if proba.shape[1:] != (codes.n_classes,):
        raise UserError(
            f"probabilities have shape {proba.shape}; codes of {codes.n_classes}"
            f" classes want (n, {codes.n_classes})."
        )
    return proba


def _list_names(classes: NDArray[Any]) -> str:
    text = ", ".join(str(name) for name in classes[:8].tolist())
    return text + (", ..." if len(classes) > 8 else "")


# The quantile of the normal law that a two-sided interval of 95 % ends at.
Z: Final = 1.959963984540054


class Score(NamedTuple):
    """An estimate, its standard error, and the ends of a 95 % interval.

    None is cut to what the score can be: an accuracy may be above 1 here.

    Parameters
    ----------
    value : float
        The estimate.
    se : float
        Its standard error.
    low, high : float
        The interval.

    Examples
    --------
    >>> score = Score(value=0.8, se=0.01, low=0.78, high=0.82)
    >>> print(f"{score.value} in {score.low} .. {score.high}")
    0.8 in 0.78 .. 0.82
    """

    value: float
    se: float
    low: float
    high: float


def mean_score(values: FloatArray) -> Score:
    """Return the mean of the records' contributions (n,), n >= 2, with its error."""
    if len(values) < 2:
        raise UserError(f"{len(values)} codes have no standard error; give 2 or more.")
    value, se = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    return Score(value, se, value - Z * se, value + Z * se)
