"""What a model says of records, in the order of the classes that codes have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.validate import FloatArray, finite


@dataclass(frozen=True)
class Predicted:
    """The place of each record's predicted class (n,), and probabilities (n, K)."""

    places: NDArray[np.int64]
    proba: FloatArray

    def __getitem__(self, rows: Any) -> Predicted:
        """Return what is said of some records."""
        return Predicted(self.places[rows], self.proba[rows])


def predicted(model: Any, X: Any, codes: Codes) -> Predicted:
    """Return what a fitted classifier says of ``X``, or what probabilities (n, K) say.

    Another number of records than of codes, and other classes, are a UserError.
    """
    if not hasattr(model, "predict_proba"):
        proba = _shaped(finite(model=model), codes)
        return Predicted(proba.argmax(axis=1), proba)
    same_classes("model", model.classes_, codes)
    if hasattr(model, "predict_both"):
        both: Predicted = model.predict_both(X)
        _shaped(both.proba, codes)
        return both
    proba = _shaped(np.asarray(model.predict_proba(X), dtype=np.float64), codes)
    order = np.argsort(codes.classes, kind="stable")
    found = np.searchsorted(codes.classes[order], model.predict(X))
    return Predicted(order[found], proba)


def same_classes(whose: str, classes: Any, codes: Codes) -> None:
    """Refuse codes of other classes than the model's, or in another order."""
    known = np.asarray(classes)
    if len(known) != codes.n_classes:
        raise UserError(
            f"the codes are of {codes.n_classes} classes, the {whose} has {len(known)}."
        )
    if not np.array_equal(known, codes.classes):
        raise UserError(
            f"the codes are of the classes {_listed(codes.classes)}; the {whose} has"
            f" {_listed(known)}."
        )


def same_length(n: int, codes: Codes) -> None:
    """Refuse codes that are not one for each record."""
    if n != len(codes):
        raise UserError(
            f"X has {n} records, and there are {len(codes)} codes; each record has one."
        )


def _shaped(proba: FloatArray, codes: Codes) -> FloatArray:
    same_length(len(proba), codes)
    if proba.shape[1:] != (codes.n_classes,):
        raise UserError(
            f"probabilities have shape {proba.shape}; codes of {codes.n_classes}"
            f" classes want (n, {codes.n_classes})."
        )
    return proba


def _listed(classes: NDArray[Any], most: int = 8) -> str:
    shown = ", ".join(str(each) for each in classes[:most].tolist())
    return shown + (", ..." if len(classes) > most else "")
