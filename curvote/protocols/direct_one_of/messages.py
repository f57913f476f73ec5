"""The message of 1-of-K: one of the classes, and a noised direction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from curvote.chain.stage import Columns
from curvote.client.one_of import Answer, OneOfReporter
from curvote.entropy import Entropy, is_study, stream
from curvote.mechanisms.one_of import MOST_CLASSES, OneOf
from curvote.protocols.direct.arms import from_params
from curvote.protocols.direct.messages import Direction, rehearsed, terms_of
from curvote.protocols.message import Known, Setting
from curvote.protocols.payloads import Payload
from curvote.representation.direction import Directions
from curvote.representation.encoding import Encoding
from curvote.task import Task

Array = NDArray[np.float64]
ARM = "one_of"


class OneOfPayload(Payload):
    """The place of one of the task's classes, and a noised direction."""

    named: Annotated[int, Field(ge=0, lt=MOST_CLASSES)]
    direction: list[FiniteFloat]


@dataclass(frozen=True)
class NamedDirection(Direction):
    """A client's record as a class and a unit vector, noised together by `OneOf`."""

    table: str = "named_directions"
    payload: type[Payload] = OneOfPayload
    what: str = "one of the classes and a direction, both noised together"
    mechanism: str = OneOf.name

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the vectors, as the intercept makes them."""
        made = terms_of(ARM, encoding, setting("direct.intercept"))
        return {**made, "mechanism": OneOf.name}

    def rehearsal(self, stated: Task) -> Task:
        """Return the task itself, or one of the arm where it names no constants."""
        return replace(rehearsed(stated, ARM), mechanism=OneOf.name)

    def worst_loss(self, task: Task) -> float:
        """Return the loss of class and direction together."""
        return self._one_of(task).mechanism.worst_log_ratio()

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return classes (n,) and the noised directions, (n, size)."""
        noise, reporter = stream(entropy, "feature_noise"), self._one_of(task)
        study = is_study(entropy)
        named, at = reporter.release(known.z, known.labels, noise, study=study)
        return {"named": named, "direction": at}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether the mechanism can have given it."""
        return self._one_of(task).possible(messages["named"], messages["direction"])

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of the answer, that is of the whole record."""
        at: Answer = messages["named"], np.asarray(messages["direction"])
        pair = (one.z, one.labels), (other.z, other.labels)
        return self._one_of(task).log_ratio(*pair, at)

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``named_directions``."""
        named = messages["named"].astype(np.int64)
        return {**super().gather(task, messages), "named": named}

    def _one_of(self, task: Task) -> OneOfReporter:
        return OneOfReporter.build(self._vectors(task), len(task.classes), task.epsilon)

    def _vectors(self, task: Task) -> Directions:
        return from_params(task.encoding.d, task.params)


MESSAGES = {"report": NamedDirection()}
