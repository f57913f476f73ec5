"""Floors: deployments that cost epsilon 0, because nothing sensitive is sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.utility.deployments.deployment import WITHHOLD, Deployment
from curvote.utility.setting import NO_TRAIN, Places, Setting
from curvote.validate import FloatArray


def floor_deployments(setting: Setting) -> list[Deployment]:
    """Return the floors that can be known for a setting.

    The public median in the sensitive features' place; with public records the class
    that most of them give, put in their place; with training data the model trained
    without them.
    """
    none = (0.0,) * len(setting.sensitive)
    raw = Deployment(WITHHOLD, 0.0, none)
    decoded = [replace(raw, read="decode")] if setting.public is not None else []
    trained = [replace(raw, read="without")] if setting.train is not None else []
    return [raw, *decoded, *trained]


@dataclass(frozen=True)
class Majority:
    """Scores of always naming the most frequent class, each in [0, 1]."""

    agreement: float
    accuracy: float | None
    balanced_accuracy: float | None


def majority_floor(clean: Places, labels: Places | None) -> Majority:
    """Return the scores of the most frequent clean answer, or label."""
    agreement = float(np.bincount(clean).max() / len(clean))
    if labels is None:
        return Majority(agreement, None, None)
    counts = np.bincount(labels)
    accuracy = float(counts.max() / len(labels))
    return Majority(agreement, accuracy, float(1 / np.count_nonzero(counts)))


def answers_withheld(setting: Setting) -> Places:
    """Return the model's answers with the public constants in place, (n,)."""
    return setting.answers(_with_constants(setting, setting.records))


def _with_constants(setting: Setting, records: FloatArray) -> FloatArray:
    """Return records with public constants in the sensitive columns."""
    rows = np.array(records, dtype=np.float64)
    rows[:, list(setting.sensitive)] = setting.fill_value
    return rows


def answers_without(setting: Setting) -> Places:
    """Return the answers of the model trained without the sensitive features, (n,).

    A constant stands in their place in training and in use, so that pipelines which
    name or count columns still fit; nothing can be learnt from a constant.
    """
    if setting.train is None:
        raise UserError(NO_TRAIN)
    features, targets = setting.train
    fitted = fit_again(setting.model, _with_constants(setting, features), targets)
    return setting.answers(_with_constants(setting, setting.records), fitted)


def fit_again(model: Any, features: FloatArray, targets: NDArray[Any]) -> Any:
    """Return a model with the same parameters, fitted on other data.

    UserError for what is no estimator of scikit-learn.
    """
    from sklearn.base import clone

    try:
        copy = clone(model)
    except TypeError:
        raise UserError(
            f"{type(model).__name__} cannot be fitted again: retraining needs a"
            " scikit-learn estimator (get_params and fit)."
        ) from None
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return copy.fit(features, targets)
    import pandas as pd

    return copy.fit(pd.DataFrame(features, columns=list(names)), targets)
