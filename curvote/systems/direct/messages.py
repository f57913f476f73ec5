"""Messages of `direct`: one noised direction a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from curvote.base import validate
from curvote.base.entropy import Entropy, is_study, stream
from curvote.chain.stage import Columns
from curvote.client.report import DirectionReporter
from curvote.curves.direction import Directions, class_codes
from curvote.curves.encoding import Encoding
from curvote.mechanisms.privunit import PrivUnit
from curvote.messages.arms import (
    PUBLISHED_NAMES,
    check_moment_width,
    directions_from_params,
    directions_to_params,
    make_directions,
)
from curvote.messages.message import (
    ClientData,
    Message,
    Payload,
    SettingReader,
    check_class_count,
    check_fields,
)
from curvote.messages.roles import EVERYBODY, Senders
from curvote.wire.task import Task

Array = NDArray[np.float64]


class DirectionPayload(Payload):
    """A noised direction as JSON."""

    direction: list[FiniteFloat]


@dataclass(frozen=True)
class Direction(Message):
    """A client's record as one unit vector, noised by `PrivUnit`."""

    senders: Senders = EVERYBODY
    name: str = "report"
    stage: str = "privatize"
    table: str = "directions"
    payload: type[Payload] = DirectionPayload
    fields: tuple[str, ...] = PUBLISHED_NAMES
    who: str = "every client"
    what: str = "one noised direction, made of its numbers and its label"
    mechanism: str = PrivUnit.name
    detail: str = "the whole of it"
    binary: bool = False

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the vectors, by arm and intercept."""
        return task_terms(setting("direct.arm"), encoding, setting("direct.intercept"))

    def min_messages(self, config: Mapping[str, Any]) -> int:
        """Return 2: a mean of reports needs two."""
        return 2

    def nominal_task(self, base_task: Task) -> Task:
        """Return the task itself, or that of arm ``joint`` where none is named."""
        return nominal_terms_task(base_task, "joint")

    def check_task(self, task: Task) -> None:
        """Refuse another mechanism, constants out of range and candidates."""
        check_fields(task, params=self.fields, binary=self.binary)
        check_class_count(len(task.classes))
        validate.one_of((self.mechanism,), mechanism=task.mechanism)
        directions = self._vectors(task)
        check_moment_width(directions.d, directions.share)

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of the one vector."""
        return self._reporter(task).mechanism.worst_log_ratio()

    def count_numbers(self, task: Task) -> int:
        """Return the size of the vector."""
        return self._vectors(task).size

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised directions, (n, size)."""
        record, noise = (
            self._record_arrays(task, data),
            stream(entropy, "feature_noise"),
        )
        release = self._reporter(task).release
        return {"direction": release(*record, noise, study=is_study(entropy))}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether the mechanism can have given it."""
        return self._reporter(task).possible(messages["direction"])

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of the vector, that is of the whole record."""
        pair = self._record_arrays(task, first), self._record_arrays(task, second)
        return self._reporter(task).log_ratio(*pair, messages["direction"])

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``directions``."""
        return {
            "direction": messages["direction"].reshape(-1, self._vectors(task).size)
        }

    def _reporter(self, task: Task) -> DirectionReporter:
        return DirectionReporter.build(self._vectors(task), task.epsilon)

    def _vectors(self, task: Task) -> Directions:
        return directions_from_params(task.encoding.d, task.params, len(task.classes))

    def _record_arrays(self, task: Task, data: ClientData) -> tuple[Array, Array]:
        return data.z, class_codes(data.labels, len(task.classes))


def nominal_terms_task(base_task: Task, arm: str) -> Task:
    """Return the base task, with constants of an arm where it has none."""
    named = (
        dict(base_task.params) or task_terms(arm, base_task.encoding, "auto")["params"]
    )
    return replace(base_task, mechanism=PrivUnit.name, params=named)


def task_terms(arm: str, encoding: Encoding, intercept: float | str) -> dict[str, Any]:
    """Return the task fields of an arm."""
    directions = make_directions(arm, encoding.d, encoding.rescale, intercept)
    return {"mechanism": PrivUnit.name, "params": directions_to_params(directions)}


MESSAGES = {"report": Direction()}
