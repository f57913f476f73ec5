"""Learners from their names, or from scikit-learn estimators that can learn codes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.base import clone

from curvote import validate
from curvote.errors import UserError
from curvote.labels.learners.base import Learner
from curvote.labels.learners.foreign import Foreign
from curvote.labels.learners.registry import LEARNERS


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
