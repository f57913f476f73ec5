"""Message of 1-of-K: a class and a direction, noised together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from curvote.base.entropy import Entropy, is_study, stream
from curvote.chain.stage import Columns
from curvote.client.report import ClassDirection, OneOfReporter
from curvote.curves.direction import Directions
from curvote.curves.encoding import Encoding
from curvote.mechanisms.privunit import MAX_CLASSES, OneOf
from curvote.messages.arms import directions_from_params
from curvote.messages.message import ClientData, Payload, SettingReader
from curvote.systems.direct.messages import Direction, nominal_terms_task, task_terms
from curvote.wire.task import Task

Array = NDArray[np.float64]
ARM = "one_of"


class OneOfPayload(Payload):
    """Payload of 1-of-K: a class's place, and a noised direction."""

    named: Annotated[int, Field(ge=0, lt=MAX_CLASSES)]
    direction: list[FiniteFloat]


@dataclass(frozen=True)
class NamedDirection(Direction):
    """A client's record as a class and a unit vector, noised together by `OneOf`."""

    table: str = "named_directions"
    payload: type[Payload] = OneOfPayload
    what: str = "one of the classes and a direction, both noised together"
    mechanism: str = OneOf.name

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the vectors, as the intercept makes them."""
        terms = task_terms(ARM, encoding, setting("direct.intercept"))
        return {**terms, "mechanism": OneOf.name}

    def nominal_task(self, base_task: Task) -> Task:
        """Return the task itself, or one of the arm where it names no constants."""
        return replace(nominal_terms_task(base_task, ARM), mechanism=OneOf.name)

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of class and direction together."""
        return self._one_of_reporter(task).mechanism.worst_log_ratio()

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return classes (n,) and the noised directions, (n, size)."""
        noise, reporter = stream(entropy, "feature_noise"), self._one_of_reporter(task)
        study = is_study(entropy)
        named, directions = reporter.release(data.z, data.labels, noise, study=study)
        return {"named": named, "direction": directions}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether the mechanism can have given it."""
        return self._one_of_reporter(task).possible(
            messages["named"], messages["direction"]
        )

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of the answer, that is of the whole record."""
        answers: ClassDirection = messages["named"], np.asarray(messages["direction"])
        pair = (first.z, first.labels), (second.z, second.labels)
        return self._one_of_reporter(task).log_ratio(*pair, answers)

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``named_directions``."""
        named = messages["named"].astype(np.int64)
        return {**super().collect(task, messages), "named": named}

    def _one_of_reporter(self, task: Task) -> OneOfReporter:
        return OneOfReporter.build(self._vectors(task), len(task.classes), task.epsilon)

    def _vectors(self, task: Task) -> Directions:
        return directions_from_params(task.encoding.d, task.params)


MESSAGES = {"report": NamedDirection()}
