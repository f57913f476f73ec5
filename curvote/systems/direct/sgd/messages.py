"""Message of `sgd`: a noised gradient at the stated coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from curvote.base import validate
from curvote.base.entropy import Entropy, is_study, stream
from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.client.report import DirectionReporter
from curvote.curves.direction import MEAN_SQUARE, Gradients, class_codes
from curvote.curves.encoding import Encoding
from curvote.mechanisms.privunit import PrivUnit
from curvote.messages.arms import INTERCEPT_FACTOR
from curvote.messages.message import (
    ClientData,
    Message,
    Payload,
    SettingReader,
    TableReader,
    check_class_count,
    check_fields,
)
from curvote.messages.roles import EVERYBODY, Senders
from curvote.wire.task import Task

Array = NDArray[np.float64]
GRADIENT_NAMES = ("intercept", "clip", "square", "coef")


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

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of gradients; coefficients come with the classes."""
        return gradient_terms(encoding, setting("sgd.clip"))

    def task(self, base_task: Task, read: TableReader) -> Task:
        """Return the first round's task: at coefficients of 0."""
        return task_at(
            base_task, start_coefficients(base_task.encoding.d, len(base_task.classes))
        )

    def nominal_task(self, base_task: Task) -> Task:
        """Return a task at coefficients at which some gradients are clipped."""
        clipped_task = replace(base_task, **gradient_terms(base_task.encoding, 0.25))
        zero = start_coefficients(base_task.encoding.d, len(base_task.classes))
        return task_at(clipped_task, np.linspace(-4, 4, zero.size).reshape(zero.shape))

    def check_task(self, task: Task) -> None:
        """Refuse another mechanism, constants out of range and candidates."""
        check_fields(task, params=GRADIENT_NAMES, binary=False)
        check_class_count(len(task.classes))
        validate.one_of((PrivUnit.name,), mechanism=task.mechanism)
        if task_gradients(task).n_classes != len(task.classes):
            raise UserError(f"coef is not of {len(task.classes)} classes.")

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of the one vector."""
        return self._reporter(task).mechanism.worst_log_ratio()

    def count_numbers(self, task: Task) -> int:
        """Return the size of the vector."""
        return task_gradients(task).size

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised gradients, (n, size)."""
        noise, study = stream(entropy, "feature_noise"), is_study(entropy)
        release = self._reporter(task).release
        return {"gradient": release(*_record_arrays(task, data), noise, study=study)}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether the mechanism can have given it."""
        return self._reporter(task).possible(messages["gradient"])

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of the vector, that is of the whole record."""
        pair = _record_arrays(task, first), _record_arrays(task, second)
        return self._reporter(task).log_ratio(*pair, messages["gradient"])

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the noised gradients of a round."""
        return {"gradient": messages["gradient"].reshape(-1, task_gradients(task).size)}

    def _reporter(self, task: Task) -> DirectionReporter:
        return DirectionReporter.build(task_gradients(task), task.epsilon)


def task_gradients(task: Task) -> Gradients:
    """Return the gradients that a task publishes; UserError: it lacks a constant."""
    return gradients_from_params(task.encoding.d, task.params)


def gradients_from_params(d: int, params: Mapping[str, Any]) -> Gradients:
    """Return the gradients that parameters of a task describe."""
    missing = [name for name in GRADIENT_NAMES if name not in params]
    if missing:
        raise UserError(f"the task states no {', '.join(missing)} of its gradients.")
    return Gradients(d, **{name: params[name] for name in GRADIENT_NAMES})


def gradient_terms(encoding: Encoding, clip: float) -> dict[str, Any]:
    """Return the task fields of gradients, without coefficients."""
    square = MEAN_SQUARE[encoding.rescale]
    intercept = float(INTERCEPT_FACTOR * np.sqrt(encoding.d * square))
    named = {"intercept": intercept, "clip": float(clip), "square": square}
    return {"mechanism": PrivUnit.name, "params": named}


def start_coefficients(d: int, n_classes: int) -> Array:
    """Return the coefficients (K - 1, p) of the first round: zeros."""
    return np.zeros((n_classes - 1, d + 1))


def task_at(task: Task, coef: Array) -> Task:
    """Return the task of a round: the same at other coefficients."""
    return replace(task, params={**task.params, "coef": coef.tolist()})


def _record_arrays(task: Task, data: ClientData) -> tuple[Array, Array]:
    return data.z, class_codes(data.labels, len(task.classes))


MESSAGES = {"gradient": Gradient()}
