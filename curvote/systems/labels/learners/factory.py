"""Learners by name, or around any scikit-learn regressor or multi-label classifier."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.base.warning_filters import FILTERS
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.base import NO_VOTES, Learner, LeftOutVotes
from curvote.systems.labels.learners.registry import LEARNERS


class Foreign(Learner):
    """Fits a scikit-learn estimator to codes, also a Pipeline that ends in one.

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
        model = _seed_parts(clone(self.estimator), rng)
        bagged = _enable_out_of_bag(model)
        if is_classifier(model):
            decoded = codes.decode()
            low, high = float(decoded.min()), float(decoded.max())
            if not ((decoded == low) | (decoded == high)).all():
                raise UserError(
                    f"a classifier learns bits, and codes of {codes.encoder} have none; give a"
                    " regressor."
                )
            bits, self.low_, self.high_ = (
                (decoded > (low + high) / 2).astype(np.int64),
                low,
                high,
            )
            self.model_ = _fit_quietly(_for_columns(model), X, bits)
        else:
            self.model_ = _fit_quietly(_for_columns(model), X, codes.decode())
        self.chosen_, self.tried_ = {}, []
        self._set_left_out(self._out_of_bag_votes if bagged else None)
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the estimator's predictions of each column."""
        if not is_classifier(self.model_):
            return np.asarray(self.model_.predict(X), dtype=np.float64)
        return self._map_back(_bit_probabilities(self.model_, X))

    def _map_back(self, chances: FloatArray) -> FloatArray:
        return self.low_ + chances * (self.high_ - self.low_)

    def _out_of_bag_votes(self) -> LeftOutVotes:
        last = _last_step(self.model_)
        if not is_classifier(last):
            predictions = np.asarray(last.oob_prediction_)
            return LeftOutVotes(np.arange(len(predictions)), predictions)
        chances = np.asarray(last.oob_decision_function_)
        if chances.ndim != 3:  # (n, 2, K), but for a column of one value
            return NO_VOTES
        return LeftOutVotes(np.arange(len(chances)), self._map_back(chances[:, 1]))


def _last_step(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


def _seed_parts(model: Any, rng: np.random.Generator) -> Any:
    """Return the model, every part without a seed of its own seeded by ``rng``."""
    params = model.get_params(deep=True)
    unset = sorted(
        name
        for name in params
        if (name.rpartition("__")[2] == "random_state") and params[name] is None
    )
    return model.set_params(**{name: int(rng.integers(2**31)) for name in unset})


def _enable_out_of_bag(model: Any) -> bool:
    """Ask a forest for its votes out of bag, and return whether it is one."""
    last = _last_step(model)
    params = last.get_params(deep=False)
    if "oob_score" not in params or not params.get("bootstrap", False):
        return False
    last.set_params(oob_score=True)
    return True


def _for_columns(model: Any) -> Any:
    """Return the model, or one copy a column if it takes a single column only."""
    tags = get_tags(model)
    if is_classifier(model):
        several = tags.classifier_tags.multi_label or tags.target_tags.multi_output
        return model if several else OneVsRestClassifier(model)
    several = tags.target_tags.multi_output
    return model if several else MultiOutputRegressor(model)


def _fit_quietly(model: Any, X: FloatArray, columns: NDArray[Any]) -> Any:
    with FILTERS, warnings.catch_warnings():
        # Out of bag for no tree, and columns of one value, are no mistakes here.
        warnings.filterwarnings("ignore", "Some inputs do not have OOB", UserWarning)
        warnings.filterwarnings("ignore", "Label not .* is present", UserWarning)
        return model.fit(X, columns)


def _bit_probabilities(model: Any, X: FloatArray) -> FloatArray:
    """Return the probability that each bit is 1, (n, K), in any model's form."""
    chances = model.predict_proba(X)
    if not isinstance(chances, list):
        return np.asarray(chances, dtype=np.float64)
    classes = _last_step(model).classes_
    return np.column_stack(
        [_chance_of_one(*pair) for pair in zip(chances, classes, strict=True)]
    )


def _chance_of_one(chances: FloatArray, classes: NDArray[Any]) -> FloatArray:
    return np.asarray(chances @ (np.asarray(classes) == 1))


def make(estimator: Any, **params: Any) -> Learner:
    """Return an unfitted learner.

    ``estimator`` is a name of the registry, a `Learner`, or a scikit-learn regressor,
    multi-label classifier or Pipeline that ends in one. ``params`` are its parameters.
    Unknown names and parameters, and whatever has no ``fit``, are UserErrors.
    """
    learner = (
        _named_learner(estimator)
        if isinstance(estimator, str)
        else _clone_estimator(estimator)
    )
    for name in params:
        validate.one_of(learner.get_params(), parameter=name)
    learner.set_params(**params)
    return learner if isinstance(learner, Learner) else Foreign(learner)


def _named_learner(name: str) -> Learner:
    place, _, kind = LEARNERS[validate.one_of(LEARNERS, estimator=name)].partition(":")
    learner: Learner = getattr(import_module(place), kind)()
    return learner


def _clone_estimator(estimator: Any) -> Any:
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise UserError(
            f"estimator is {validate.format_value(estimator)}; give one of"
            f" {', '.join(LEARNERS)}, or a scikit-learn regressor or classifier."
        )
    return clone(estimator)
