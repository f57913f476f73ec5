"""A deployment: what of a record is sent, how it is noised, and how it is read."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from curvote import validate
from curvote.errors import UserError
from curvote.mechanisms.base import LabelMechanism, Mechanism, VectorMechanism
from curvote.mechanisms.making import kind
from curvote.utility.channel import Channel, Part
from curvote.utility.setting import Setting

Read = Literal["raw", "decode", "retrain", "without"]
READS = ("raw", "decode", "retrain", "without")
# Deployments that are no mechanism on features.
WITHHOLD, OUTPUT = "withhold", "output"
# More levels than these say no more: a percent of the bounds.
MOST_LEVELS = 101


@dataclass(frozen=True)
class Deployment:
    """What is sent at a total ``epsilon`` and how the server reads it.

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
    read: Read = "raw"
    delta: float = 0.0
    params: Mapping[str, Any] = field(default_factory=dict)
    project: str = ""

    @property
    def free(self) -> bool:
        """Whether it is a floor: nothing is sent."""
        return self.mechanism == WITHHOLD

    def words(self, names: tuple[str, ...]) -> str:
        """Return the deployment in words; ``names`` are the sensitive features'."""
        sent = self._sent(names)
        how = {"decode": ", decoded", "retrain": ", retrained"}.get(self.read, "")
        what = f" of {self.project}" if self.project else ""
        return f"{sent}{what}{how}"

    def _sent(self, names: tuple[str, ...]) -> str:
        if self.free:
            trained = "the model trained without them"
            return trained if self.read == "without" else "nothing sent"
        if self.mechanism == OUTPUT:
            return "randomised response on the answer"
        if self.split is None:
            return f"{self.mechanism} on all jointly"
        shares = zip(names, self.split, strict=True)
        parts = [f"{share:.2g} on {name}" for name, share in shares if share > 0]
        return f"{self.mechanism}, {' and '.join(parts)}"


def checked(deployment: Deployment, s: int) -> Deployment:
    """Return the deployment if it is one for ``s`` sensitive features, or UserError."""
    validate.one_of(READS, read=deployment.read)
    if deployment.free:
        return deployment
    validate.positive(epsilon=deployment.epsilon)
    if deployment.read == "without":
        raise UserError("read is 'without': that model is sent nothing; withhold.")
    if deployment.mechanism != OUTPUT:
        _split(deployment, s)
    return deployment


def _split(deployment: Deployment, s: int) -> None:
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
    """Say whether the mechanism takes a record as a whole; by its class."""
    return issubclass(kind(name), VectorMechanism)


def levels(epsilon: float) -> int:
    """Return into how many levels a feature is put before randomised response.

    1 + e^(epsilon/2), rounded, from 2 to 101: as many as windows of the piecewise
    mechanism at that epsilon, so that a kept level is as likely as its window. Public:
    it depends on nothing but the feature's own epsilon.
    """
    return min(MOST_LEVELS, max(2, 1 + round(math.exp(min(epsilon / 2, 10)))))


def built(name: str, epsilon: float, d: int, given: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism for ``d`` features jointly, or one, at its own epsilon.

    What it needs beside is filled in where there is a public default (d, and the
    `levels` of a label mechanism); anything else that is missing is a UserError.
    """
    cls = kind(name)
    known = inspect.signature(cls).parameters
    params = {key: value for key, value in given.items() if key in known}
    if issubclass(cls, VectorMechanism):
        params["d"] = d
    if issubclass(cls, LabelMechanism):
        params.setdefault("n_classes", levels(epsilon))
    for key, fact in known.items():
        if fact.default is fact.empty and key not in {"epsilon", *params}:
            raise UserError(f"{name} needs {key}: give it, or another mechanism.")
    return cls(epsilon=epsilon, **params)


def channel(
    setting: Setting, deployment: Deployment, *, clip: bool | None = None
) -> Channel:
    """Return what stands between a record and the model; ``clip`` overrules."""
    clips = setting.clip if clip is None else clip
    parts = _parts(deployment, len(setting.sensitive))
    return Channel(parts, setting.bounds, setting.instead, clips)


def _parts(deployment: Deployment, s: int) -> list[Part]:
    if deployment.mechanism in {WITHHOLD, OUTPUT}:
        return []
    given = {**deployment.params}
    if deployment.delta:
        given["delta"] = deployment.delta
    name, epsilon = deployment.mechanism, deployment.epsilon
    if deployment.split is None:
        return [Part(built(name, epsilon, s, given), tuple(range(s)))]
    shares = [(place, share) for place, share in enumerate(deployment.split) if share]
    return [
        Part(built(name, epsilon * share, 1, given), (place,))
        for place, share in shares
    ]
