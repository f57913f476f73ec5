"""The messages of `direct`: a noised direction, and one in whitened coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, FiniteFloat

from curvote import validate
from curvote.chain.stage import Columns, Inputs
from curvote.client.direction import DirectionReporter
from curvote.entropy import Entropy
from curvote.mechanisms.privunit import PrivUnit
from curvote.protocols.direct.arms import (
    PUBLISHED,
    check_width,
    from_params,
    to_params,
    vectors,
)
from curvote.protocols.message import Known, Setting, check_fields
from curvote.protocols.roles import EVERYBODY, Senders
from curvote.representation.direction import Directions
from curvote.task import Task

Array = NDArray[np.float64]


class DirectionPayload(BaseModel):
    """A noised direction as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)

    direction: list[FiniteFloat]


@dataclass(frozen=True)
class Direction:
    """A client's record as one unit vector, noised by `PrivUnit`."""

    senders: Senders = EVERYBODY
    name: str = "report"
    stage: str = "privatize"
    table: str = "directions"
    payload: type[BaseModel] = DirectionPayload
    bounded: bool = False
    fields: tuple[str, ...] = PUBLISHED
    shuffled: bool = True

    def terms(self, setting: Setting) -> dict[str, Any]:
        """Return the arm and the intercept; `task` makes numbers of them."""
        params = {name: setting(f"direct.{name}") for name in ("arm", "intercept")}
        return {"mechanism": PrivUnit.name, "params": params}

    def task(self, stated: Task, inputs: Inputs) -> Task:
        """Return the stated task with the constants of its vectors spelled out."""
        given = vectors(
            stated.params["arm"],
            stated.encoding.d,
            stated.encoding.rescale,
            stated.params["intercept"],
        )
        return replace(stated, asks=self.name, params=to_params(given))

    def least(self, config: Mapping[str, Any]) -> int:
        """Return 2: a mean of reports."""
        return 2

    def rehearsal(self, stated: Task) -> Task:
        """Return the task itself, or that of arm ``joint`` where none is named."""
        params = {"arm": "joint", "intercept": "auto"} | dict(stated.params)
        own = replace(stated, mechanism=PrivUnit.name, params=params)
        return self.task(own, {})

    def admit(self, task: Task) -> None:
        """Refuse another mechanism, constants out of range and candidates."""
        check_fields(task, params=self.fields)
        validate.one_of((PrivUnit.name,), mechanism=task.mechanism)
        given = from_params(task.encoding.d, task.params)
        check_width(given.d, given.share)

    def worst_loss(self, task: Task) -> float:
        """Return the loss of the one vector."""
        return self._reporter(task).mechanism.worst_log_ratio()

    def numbers(self, task: Task) -> int:
        """Return the size of the vector."""
        return self._vectors(task).size

    def draw(self, task: Task, known: Known, entropy: Entropy) -> Columns:
        """Return the noised directions, (n, size)."""
        z, labels = self._record(task, known)
        return {"direction": self._reporter(task).release(z, labels, entropy)}

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
        return from_params(task.encoding.d, task.params)

    def _record(self, task: Task, known: Known) -> tuple[Array, Array]:
        return known.z, known.labels


MESSAGES = {"report": Direction()}
