"""Learners by name, or around any scikit-learn regressor or multi-label classifier."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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
from curvote.systems.labels.learners import base
from curvote.systems.labels.learners.registry import LEARNERS


@dataclass(eq=False, repr=False)
class Foreign(base.Learner):
    """Fits a scikit-learn estimator to codes, also a Pipeline that ends in one.

    A regressor learns the K decoded columns; a classifier the K bits of each code, and
    its probability g of a bit is mapped back to (g - q) / (p - q) (VEC section 4.3).
    One that takes a single column is fitted a column at a time. Forests give left-out
    votes, out of bag.
    """

    estimator: Any

    def _learn(self, data: base.TrainingSet) -> None:
        """Fit a copy; what it draws comes from ``rng`` unless it has its own seed."""
        X, codes, rng, _ = data
        model = clone(self.estimator)
        refuse_many_neighbours(model, len(X))
        params = model.get_params(deep=True)
        unset = sorted(
            name
            for name, value in params.items()
            if name.rpartition("__")[2] == "random_state" and value is None
        )
        model.set_params(**{name: int(rng.integers(2**31)) for name in unset})
        # A forest is asked for its votes out of bag.
        params = _last_step(model).get_params(deep=False)
        bagged = "oob_score" in params and params.get("bootstrap", False)
        if bagged:
            _last_step(model).set_params(oob_score=True)
        columns: NDArray[Any] = codes.decode()
        if is_classifier(model):
            self.low_, self.high_ = float(columns.min()), float(columns.max())
            if not ((columns == self.low_) | (columns == self.high_)).all():
                raise UserError(
                    f"a classifier learns bits, and codes of {codes.encoder} have none;"
                    " give a regressor."
                )
            columns = (columns > (self.low_ + self.high_) / 2).astype(np.int64)
        with FILTERS, warnings.catch_warnings():
            # Out of bag for no tree, and columns of one value, are no mistakes here.
            for message in ("Some inputs do not have OOB", "Label not .* is present"):
                warnings.filterwarnings("ignore", message, UserWarning)
            self.model_ = _for_columns(model).fit(X, columns)
        self._set_left_out(self._out_of_bag_votes if bagged else None)

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the estimator's predictions of each column."""
        if not is_classifier(self.model_):
            return np.asarray(self.model_.predict(X), dtype=np.float64)
        chances = self.model_.predict_proba(X)
        if isinstance(chances, list):  # a table for each column, of its own classes
            classes = _last_step(self.model_).classes_
            chances = np.column_stack(
                [
                    np.asarray(table @ (np.asarray(values) == 1))
                    for table, values in zip(chances, classes, strict=True)
                ]
            )
        return self._map_back(np.asarray(chances, dtype=np.float64))

    def _map_back(self, chances: FloatArray) -> FloatArray:
        return self.low_ + chances * (self.high_ - self.low_)

    def _out_of_bag_votes(self) -> base.LeftOutVotes:
        last = _last_step(self.model_)
        if not is_classifier(last):
            predictions = np.asarray(last.oob_prediction_)
            return base.LeftOutVotes(np.arange(len(predictions)), predictions)
        chances = np.asarray(last.oob_decision_function_)
        if chances.ndim != 3:  # (n, 2, K), but for a column of one value
            return base.NO_VOTES
        return base.LeftOutVotes(np.arange(len(chances)), self._map_back(chances[:, 1]))


def _last_step(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


def _for_columns(model: Any) -> Any:
    """Return the model, or one copy a column if it takes a single column only."""
    tags = get_tags(model)
    if is_classifier(model):
        several = tags.classifier_tags.multi_label or tags.target_tags.multi_output
        return model if several else OneVsRestClassifier(model)
    several = tags.target_tags.multi_output
    return model if several else MultiOutputRegressor(model)


def refuse_many_neighbours(model: Any, n: int) -> None:
    """Refuse (UserError) an estimator of more neighbours than ``n`` records."""
    for name, value in model.get_params().items():
        if name.rpartition("__")[2] == "n_neighbors" and value and value > n:
            raise UserError(
                f"{name} is {value}, but n_samples = {n} records are learnt from; give"
                " fewer neighbours."
            )


def make(estimator: Any, **params: Any) -> base.Learner:
    """Return an unfitted learner.

    ``estimator`` is a name of the registry, a `Learner`, or a scikit-learn regressor,
    multi-label classifier or Pipeline that ends in one. ``params`` are its parameters.
    Unknown names and parameters, and whatever has no ``fit``, are UserErrors.
    """
    if isinstance(estimator, str):
        learner = LEARNERS.load(estimator)()
    elif not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise UserError(
            f"estimator is {validate.format_value(estimator)}; give one of"
            f" {', '.join(LEARNERS)}, or a scikit-learn regressor or classifier."
        )
    else:
        learner = clone(estimator)
    for name in params:
        validate.one_of(learner.get_params(), parameter=name)
    learner.set_params(**params)
    return learner if isinstance(learner, base.Learner) else Foreign(learner)


_GRAPH_SIZES = ("anchors", "neighbours")


def needs_graph(learners: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether some learner takes a graph and states none of its own.

    Parameters that are left to their defaults may be left out.
    """
    unfitted = (make(entry["name"], **entry.get("params", {})) for entry in learners)
    return any(map(takes_graph, unfitted))


def takes_graph(learner: base.Learner) -> bool:
    """Return whether a learner takes a graph as ``spectral``, and states none."""
    params = learner.get_params()
    if "spectral" not in params:
        return False
    usual = type(learner)().get_params()
    has_own_graph = any(params.get(name) != usual.get(name) for name in _GRAPH_SIZES)
    return params["spectral"] is None and not has_own_graph
