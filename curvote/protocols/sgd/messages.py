"""The message of `sgd`: a noised gradient at the coefficients that the task states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from curvote import validate
from curvote.chain.stage import Columns
from curvote.client.direction import DirectionReporter
from curvote.entropy import Entropy, is_study, stream
from curvote.errors import UserError
from curvote.mechanisms.privunit import PrivUnit
from curvote.protocols.direct.arms import INTERCEPT
from curvote.protocols.fields import check_fields, check_number
from curvote.protocols.message import Known, Message, Read, Setting
from curvote.protocols.payloads import Payload
from curvote.protocols.roles import EVERYBODY, Senders
from curvote.representation.direction import SQUARE
from curvote.representation.encoding import Encoding
from curvote.representation.gradient import Gradients
from curvote.representation.simplex import codes
from curvote.task import Task

Array = NDArray[np.float64]
PUBLISHED = ("intercept", "clip", "square", "coef")


class GradientPayload(Payload):
    """A noised gradient as JSON."""

    gradient: list[FiniteFloat]


@dataclass(frozen=True)
class Gradient(Message):
    """A client's clipped gradient, filled up to a unit vector, by `PrivUnit`."""

    senders: Senders = EVERYBODY
    name: str = "gradient"
    stage: str = "descend"
    table: str = "gradients"
    payload: type[Payload] = GradientPayload
    what: str = "one noised gradient of its loss, clipped, its length hidden too"
    mechanism: str = PrivUnit.name
    detail: str = "the whole of it, in the one round that its client is asked in"

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of gradients; coefficients come with the classes."""
        return terms_of(encoding, setting("sgd.clip"))

    def task(self, stated: Task, read: Read) -> Task:
        """Return the first round's task: at coefficients of 0."""
        return at(stated, start(stated.encoding.d, len(stated.classes)))

    def rehearsal(self, stated: Task) -> Task:
        """Return a task at coefficients at which some gradients are clipped."""
        given = replace(stated, **terms_of(stated.encoding, 0.25))
        zero = start(stated.encoding.d, len(stated.classes))
        return at(given, np.linspace(-4, 4, zero.size).reshape(zero.shape))

    def admit(self, task: Task) -> None:
        """Refuse another mechanism, constants out of range and candidates."""
        check_fields(task, params=PUBLISHED, binary=False)
        check_number(len(task.classes))
        validate.one_of((PrivUnit.name,), mechanism=task.mechanism)
        if gradients(task).n_classes != len(task.classes):
            raise UserError(f"coef is not of {len(task.classes)} classes.")

    def worst_loss(self, task: Task) -> float:
        """Return the loss of the one vector."""
        return self._reporter(task).mechanism.worst_log_ratio()

    def numbers(self, task: Task) -> int:
        """Return the size of the vector."""
        return gradients(task).size

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the noised gradients, (n, size)."""
        noise, study = stream(entropy, "feature_noise"), is_study(entropy)
        release = self._reporter(task).release
        return {"gradient": release(*_record(task, known), noise, study=study)}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether the mechanism can have given it."""
        return self._reporter(task).possible(messages["gradient"])

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of the vector, that is of the whole record."""
        pair = _record(task, one), _record(task, other)
        return self._reporter(task).log_ratio(*pair, messages["gradient"])

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the noised gradients of a round."""
        return {"gradient": messages["gradient"].reshape(-1, gradients(task).size)}

    def _reporter(self, task: Task) -> DirectionReporter:
        return DirectionReporter.build(gradients(task), task.epsilon)


def gradients(task: Task) -> Gradients:
    """Return the gradients that a task publishes; UserError: it lacks a constant."""
    return from_params(task.encoding.d, task.params)


def from_params(d: int, params: Mapping[str, Any]) -> Gradients:
    """Return the gradients of d numbers that a task's parameters describe."""
    missing = [name for name in PUBLISHED if name not in params]
    if missing:
        raise UserError(f"the task states no {', '.join(missing)} of its gradients.")
    return Gradients(d, **{name: params[name] for name in PUBLISHED})


def terms_of(encoding: Encoding, clip: float) -> dict[str, Any]:
    """Return the fields of a task that asks for gradients, but for coefficients."""
    square = SQUARE[encoding.rescale]
    s = float(INTERCEPT * np.sqrt(encoding.d * square))
    named = {"intercept": s, "clip": float(clip), "square": square}
    return {"mechanism": PrivUnit.name, "params": named}


def start(d: int, n_classes: int) -> Array:
    """Return the coefficients (K - 1, p) of the first round: none is known."""
    return np.zeros((n_classes - 1, d + 1))


def at(task: Task, coef: Array) -> Task:
    """Return the task of a round: the same at coefficients (K - 1, p)."""
    return replace(task, params={**task.params, "coef": coef.tolist()})


def _record(task: Task, known: Known) -> tuple[Array, Array]:
    return known.z, codes(known.labels, len(task.classes))


MESSAGES = {"gradient": Gradient()}
