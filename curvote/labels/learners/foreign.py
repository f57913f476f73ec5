"""Any scikit-learn regressor or multi-label classifier as a learner from codes."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from curvote.errors import UserError
from curvote.labels.codes import Codes
from curvote.labels.learners.base import NONE, Learner, LeftOut
from curvote.validate import FloatArray
from curvote.warned import FILTERS


class Foreign(Learner):
    """Fits a scikit-learn estimator, also a Pipeline that ends in one.

    A regressor learns the K decoded columns; a classifier the K bits of each code, and
    its probability g of a bit is mapped back to (g - q) / (p - q) (VEC section 4.3).
    One that takes a single column is fitted a column at a time. Forests give left-out
    votes, out of bag.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Fit a copy; what it draws comes from ``rng`` unless it has its own seed."""
        model = _seeded(clone(self.estimator), rng)
        bagged = _out_of_bag(model)
        if is_classifier(model):
            bits, self.low_, self.high_ = _bits(codes)
            self.model_ = _fitted(_of_columns(model), X, bits)
        else:
            self.model_ = _fitted(_of_columns(model), X, codes.decode())
        self.chosen_, self.tried_ = {}, []
        self._forget(self._out_of_bag if bagged else None)
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return what the estimator predicts of each column."""
        if not is_classifier(self.model_):
            return np.asarray(self.model_.predict(X), dtype=np.float64)
        return self._mapped(_chances(self.model_, X))

    def _mapped(self, chances: FloatArray) -> FloatArray:
        return self.low_ + chances * (self.high_ - self.low_)

    def _out_of_bag(self) -> LeftOut:
        last = _last(self.model_)
        if not is_classifier(last):
            found = np.asarray(last.oob_prediction_)
            return LeftOut(np.arange(len(found)), found)
        chances = np.asarray(last.oob_decision_function_)
        if chances.ndim != 3:  # (n, 2, K), but for a column of one value
            return NONE
        return LeftOut(np.arange(len(chances)), self._mapped(chances[:, 1]))


def _last(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


def _seeded(model: Any, rng: np.random.Generator) -> Any:
    """Give every part that has no seed of its own one from ``rng``."""
    known = model.get_params(deep=True)
    unset = sorted(name for name in known if _is_seed(name) and known[name] is None)
    return model.set_params(**{name: int(rng.integers(2**31)) for name in unset})


def _is_seed(name: str) -> bool:
    return name.rpartition("__")[2] == "random_state"


def _out_of_bag(model: Any) -> bool:
    """Ask a forest for its votes out of bag, and say whether it is one."""
    last = _last(model)
    known = last.get_params(deep=False)
    if "oob_score" not in known or not known.get("bootstrap", False):
        return False
    last.set_params(oob_score=True)
    return True


def _of_columns(model: Any) -> Any:
    """Return the model, or one copy a column if it takes a single column only."""
    tags = get_tags(model)
    if is_classifier(model):
        several = tags.classifier_tags.multi_label or tags.target_tags.multi_output
        return model if several else OneVsRestClassifier(model)
    several = tags.target_tags.multi_output
    return model if several else MultiOutputRegressor(model)


def _fitted(model: Any, X: FloatArray, columns: NDArray[Any]) -> Any:
    with FILTERS, warnings.catch_warnings():
        # Out of bag for no tree, and columns of one value, are no mistakes here.
        warnings.filterwarnings("ignore", "Some inputs do not have OOB", UserWarning)
        warnings.filterwarnings("ignore", "Label not .* is present", UserWarning)
        return model.fit(X, columns)


def _bits(codes: Codes) -> tuple[NDArray[np.int64], float, float]:
    """Return the K bits of each code, and what decoding makes of 0 and of 1."""
    decoded = codes.decode()
    low, high = float(decoded.min()), float(decoded.max())
    if not ((decoded == low) | (decoded == high)).all():
        raise UserError(
            f"a classifier learns bits, and codes of {codes.encoder} have none; give a"
            " regressor."
        )
    return (decoded > (low + high) / 2).astype(np.int64), low, high


def _chances(model: Any, X: FloatArray) -> FloatArray:
    """Return the probability that each bit is 1, (n, K), in whichever form it comes."""
    found = model.predict_proba(X)
    if not isinstance(found, list):
        return np.asarray(found, dtype=np.float64)
    classes = _last(model).classes_
    return np.column_stack(
        [_of_one(*pair) for pair in zip(found, classes, strict=True)]
    )


def _of_one(chances: FloatArray, classes: NDArray[Any]) -> FloatArray:
    return np.asarray(chances @ (np.asarray(classes) == 1))
