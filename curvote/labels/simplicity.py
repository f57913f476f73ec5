"""Selection among candidates by codes that they have not seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from curvote.labels.learners.foreign import Foreign
from curvote.labels.learners.making import make

# The direction in which a hyperparameter makes a learner smoother.
SMOOTHER: Mapping[str, int] = {
    "k": 1,
    "n_neighbors": 1,
    "min_samples_leaf": 1,
    "m": -1,
    "n_components": -1,
    "max_depth": -1,
    "C": -1,
    "alpha": 1,
    "ridge": 1,
}


def simplicity_order(estimators: Sequence[Any]) -> list[int]:
    """Return the places of the candidates' estimators, the simplest first.

    Kinds of learners come in the order of the grid. Within a kind more neighbours,
    fewer eigenvectors or components and more ridge are simpler; what is tuned or has
    no such number keeps the order of the grid.
    """
    parts = [list(_learner_steps(estimator)) for estimator in estimators]
    kinds = list(dict.fromkeys(tuple(kind for kind, _ in steps) for steps in parts))

    def sort_key(place: int) -> tuple[Any, ...]:
        names = tuple(kind for kind, _ in parts[place])
        rough = [_roughness_by_setting(params) for _, params in parts[place]]
        return kinds.index(names), rough, place

    return sorted(range(len(estimators)), key=sort_key)


def _learner_steps(estimator: Any) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the kind and settings of a learner, or of each step of a Pipeline."""
    learner = make(estimator)
    inner = learner.estimator if isinstance(learner, Foreign) else learner
    for _, step in inner.steps if isinstance(inner, Pipeline) else [("", inner)]:
        yield type(step).__name__, _own_parameters(step)


def _own_parameters(part: Any) -> Mapping[str, Any]:
    return part.get_params(deep=False) if hasattr(part, "get_params") else {}


def _roughness_by_setting(params: Mapping[str, Any]) -> list[float]:
    """Return one number for each known setting, larger where less is smoothed."""
    return [-_finite_number(params.get(name)) * sign for name, sign in SMOOTHER.items()]


def _finite_number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else 0.0
