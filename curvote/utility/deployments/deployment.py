"""Deployments: what of a record is sent, how it is noised and read; and floors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from curvote import validate
from curvote.errors import UserError
from curvote.mechanisms.base import LabelMechanism, VectorMechanism
from curvote.mechanisms.making import mechanism_class
from curvote.utility.channel import Channel, make_channel, withheld_channel
from curvote.utility.setting import NO_PRIOR, NO_TRAIN, Setting

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
        key=lambda each: -each[0],
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
    return make_channel(
        deployment.mechanism,
        epsilon=deployment.epsilon,
        bounds=setting.bounds,
        fill_value=setting.fill_value,
        split=deployment.split,
        clip=clips,
        **_mechanism_params(deployment, len(setting.sensitive)),
    )


def _mechanism_params(deployment: Deployment, s: int) -> dict[str, Any]:
    """Return the mechanism's parameters; a label mechanism's levels are filled in."""
    params = dict(deployment.params)
    if deployment.delta:
        params["delta"] = deployment.delta
    if issubclass(mechanism_class(deployment.mechanism), LabelMechanism):
        largest = max(deployment.split or [1 / s])
        params.setdefault("n_classes", level_count(deployment.epsilon * largest))
    return params
