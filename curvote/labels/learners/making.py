"""A learner from its name, or from any scikit-learn estimator that can learn codes."""

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
    found = _named(estimator) if isinstance(estimator, str) else _cloned(estimator)
    for name in params:
        validate.one_of(found.get_params(), parameter=name)
    found.set_params(**params)
    return found if isinstance(found, Learner) else Foreign(found)


def _named(name: str) -> Learner:
    place, _, kind = LEARNERS[validate.one_of(LEARNERS, estimator=name)].partition(":")
    made: Learner = getattr(import_module(place), kind)()
    return made


def _cloned(estimator: Any) -> Any:
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise UserError(
            f"estimator is {validate.shown(estimator)}; give one of"
            f" {', '.join(LEARNERS)}, or a scikit-learn regressor or classifier."
        )
    return clone(estimator)
