"""The messages of `direct`: a noised direction, and one in whitened coordinates."""

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
from curvote.mechanisms.privunit import PrivUnit
from curvote.protocols.direct.arms import (
    PUBLISHED,
    check_width,
    from_params,
    to_params,
    vectors,
)
from curvote.protocols.fields import check_fields, check_number
from curvote.protocols.message import Known, Message, Setting
from curvote.protocols.payloads import Payload
from curvote.protocols.roles import EVERYBODY, Senders
from curvote.representation.direction import Directions
from curvote.representation.encoding import Encoding
from curvote.representation.simplex import codes
from curvote.task import Task

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
    fields: tuple[str, ...] = PUBLISHED
    who: str = "every client"
    what: str = "one noised direction, made of its numbers and its label"
    mechanism: str = PrivUnit.name
    detail: str = "the whole of it"
    binary: bool = False

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the vectors, as arm and intercept make them."""
        return terms_of(setting("direct.arm"), encoding, setting("direct.intercept"))

    def least(self, config: Mapping[str, Any]) -> int:
        """Return 2: a mean of reports."""
        return 2

    def rehearsal(self, stated: Task) -> Task:
        """Return the task itself, or that of arm ``joint`` where none is named."""
        return rehearsed(stated, "joint")

    def admit(self, task: Task) -> None:
        """Refuse another mechanism, constants out of range and candidates."""
        check_fields(task, params=self.fields, binary=self.binary)
        check_number(len(task.classes))
        validate.one_of((self.mechanism,), mechanism=task.mechanism)
        given = self._vectors(task)
        check_width(given.d, given.share)

    def worst_loss(self, task: Task) -> float:
        """Return the loss of the one vector."""
        return self._reporter(task).mechanism.worst_log_ratio()

    def numbers(self, task: Task) -> int:
        """Return the size of the vector."""
        return self._vectors(task).size

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the noised directions, (n, size)."""
        record, noise = self._record(task, known), stream(entropy, "feature_noise")
        release = self._reporter(task).release
        return {"direction": release(*record, noise, study=is_study(entropy))}

    def possible(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether the mechanism can have given it."""
        return self._reporter(task).possible(messages["direction"])

    def log_ratio(
        self, task: Task, one: Known, other: Known, messages: Columns
    ) -> Array:
        """Return the privacy loss of the vector, that is of the whole record."""
        pair = self._record(task, one), self._record(task, other)
        return self._reporter(task).log_ratio(*pair, messages["direction"])

    def gather(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``directions``."""
        return {
            "direction": messages["direction"].reshape(-1, self._vectors(task).size)
        }

    def _reporter(self, task: Task) -> DirectionReporter:
        return DirectionReporter.build(self._vectors(task), task.epsilon)

    def _vectors(self, task: Task) -> Directions:
        return from_params(task.encoding.d, task.params, len(task.classes))

    def _record(self, task: Task, known: Known) -> tuple[Array, Array]:
        return known.z, codes(known.labels, len(task.classes))


def rehearsed(stated: Task, arm: str) -> Task:
    """Return the stated task, or that of an arm where it names no constants."""
    named = dict(stated.params) or terms_of(arm, stated.encoding, "auto")["params"]
    return replace(stated, mechanism=PrivUnit.name, params=named)


def terms_of(arm: str, encoding: Encoding, intercept: float | str) -> dict[str, Any]:
    """Return the fields of the task of an arm."""
    given = vectors(arm, encoding.d, encoding.rescale, intercept)
    return {"mechanism": PrivUnit.name, "params": to_params(given)}


MESSAGES = {"report": Direction()}
