"""Deployments: what of a record is sent, how it is noised and read; and floors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import LabelMechanism, VectorMechanism
from curvote.mechanisms.factory import mechanism_class
from curvote.systems.utility.method.channel import (
    Channel,
    make_channel,
    withheld_channel,
)
from curvote.systems.utility.method.setting import NO_PRIOR, NO_TRAIN, Places, Setting

ReadMode = Literal["raw", "decode", "retrain", "without"]
READS = ("raw", "decode", "retrain", "without")
# Deployments that are no mechanism on features.
WITHHOLD, OUTPUT = "withhold", "output"
# More levels than these say no more: a percent of the bounds.
MOST_LEVELS = 101
# So many shares are written out in words.
MOST_NAMED = 4


@dataclass(frozen=True)
class Deployment:
    """Noise on a record at a total ``epsilon``, and how the server reads it.

    ``mechanism`` is a name of `curvote.mechanisms`, ``withhold`` (epsilon 0) or
    ``output`` (randomised response on the classifier's own answer). ``split`` holds
    the share of epsilon of each sensitive feature, 0 for one that is withheld; None
    for a vector mechanism, whose epsilon is the record's. ``params`` are the
    mechanism's own. ``project`` says in words which public coordinates stand for
    features, empty where none do.
    """

    mechanism: str
    epsilon: float
    split: tuple[float, ...] | None = None
    read: ReadMode = "raw"
    delta: float = 0.0
    params: Mapping[str, Any] = field(default_factory=dict)
    project: str = ""

    @property
    def free(self) -> bool:
        """Whether the deployment is a floor: nothing is sent."""
        return self.mechanism == WITHHOLD

    def describe(self, names: tuple[str, ...]) -> str:
        """Return a description; ``names`` are the sensitive features'."""
        how = {"decode": ", decoded", "retrain": ", retrained"}.get(self.read, "")
        return f"{self._describe_noise(names)}{how}"

    def _describe_noise(self, names: tuple[str, ...]) -> str:
        """Return the description without the way of reading."""
        if self.free:
            trained = "the model trained without them"
            return trained if self.read == "without" else "nothing sent"
        if self.mechanism == OUTPUT:
            return "randomised response on the answer"
        if self.project:
            return f"{self.mechanism} on {self.project}"
        if self.split is None:
            return f"{self.mechanism} on all jointly"
        return f"{self.mechanism}, {_describe_shares(self.split, names)}"


def _describe_shares(split: tuple[float, ...], names: tuple[str, ...]) -> str:
    """Return the features' shares of epsilon as text, the largest first."""
    positive = sorted(
        ((share, name) for share, name in zip(split, names, strict=True) if share > 0),
        key=lambda pair: -pair[0],
    )
    if len(positive) == 1:
        return f"all on {positive[0][1]}"
    if len(positive) > MOST_NAMED and len(set(split)) == 1:
        return f"an equal share on each of {len(positive)}"
    listed = [f"{share:.2g} on {name}" for share, name in positive[:MOST_NAMED]]
    unlisted = len(positive) - len(listed)
    return " and ".join(listed) + (
        f" and less on {unlisted} others" if unlisted else ""
    )


def check_deployment(deployment: Deployment, setting: Setting) -> Deployment:
    """Return the deployment; one that does not fit the setting is a UserError."""
    read = validate.one_of(READS, read=deployment.read)
    if read == "decode" and setting.public is None:
        raise UserError(NO_PRIOR)
    if read in {"retrain", "without"} and setting.train is None:
        raise UserError(NO_TRAIN)
    if deployment.free:
        return deployment
    validate.positive(epsilon=deployment.epsilon)
    if read == "without":
        raise UserError("The model trained without the features is sent none of them.")
    if deployment.mechanism != OUTPUT:
        _check_split(deployment, len(setting.sensitive))
    return deployment


def equal_split(mechanism: str, s: int) -> tuple[float, ...] | None:
    """Return the equal split over ``s`` features; None for a vector mechanism."""
    if mechanism == OUTPUT or (mechanism != WITHHOLD and is_vector(mechanism)):
        return None
    return (0.0 if mechanism == WITHHOLD else 1 / s,) * s


def _check_split(deployment: Deployment, s: int) -> None:
    """Refuse a split that the mechanism does not take."""
    split, name = deployment.split, deployment.mechanism
    if is_vector(name):
        if split is not None:
            raise UserError(f"{name} takes a record as a whole: leave out the split.")
        return
    if split is None or len(split) != s:
        raise UserError(f"{name} needs a split: {s} shares of epsilon.")
    if min(split) < 0 or not math.isclose(sum(split), 1, abs_tol=1e-9):
        raise UserError(f"split is {split}; shares are 0 or more and add up to 1.")


def is_vector(name: str) -> bool:
    """Return whether the mechanism takes a record as a whole."""
    return issubclass(mechanism_class(name), VectorMechanism)


def level_count(epsilon: float) -> int:
    """Return the number of levels of a feature before randomised response.

    1 + e^(epsilon/2), rounded, from 2 to 101: as many as windows of the piecewise
    mechanism at that epsilon, so that a kept level is as likely as its window. Public:
    it depends on nothing but a feature's own epsilon (the largest, where they differ).
    """
    return min(MOST_LEVELS, max(2, 1 + round(math.exp(min(epsilon / 2, 10)))))


def deployment_channel(
    setting: Setting, deployment: Deployment, *, clip: bool | None = None
) -> Channel:
    """Return the channel between record and model; ``clip`` overrules."""
    clips = setting.clip if clip is None else clip
    if deployment.mechanism in {WITHHOLD, OUTPUT}:
        return withheld_channel(setting.bounds, setting.fill_value)
    s = len(setting.sensitive)
    params = dict(deployment.params)
    if deployment.delta:
        params["delta"] = deployment.delta
    if issubclass(mechanism_class(deployment.mechanism), LabelMechanism):
        largest = max(deployment.split or [1 / s])
        params.setdefault("n_classes", level_count(deployment.epsilon * largest))
    return make_channel(
        deployment.mechanism,
        epsilon=deployment.epsilon,
        bounds=setting.bounds,
        fill_value=setting.fill_value,
        split=deployment.split,
        clip=clips,
        **params,
    )


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
