"""Messages of two rounds: a direction, then one in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.curves.direction import Directions, Whitening
from curvote.messages.arms import FIRST_ROUND_SHARE, PUBLISHED_NAMES
from curvote.messages.message import ClientData, TableReader
from curvote.messages.roles import EVERYBODY, Senders
from curvote.systems.direct.messages import Direction
from curvote.wire.task import Task

Array = NDArray[np.float64]


SECOND_SENDERS = Senders(EVERYBODY.roles, start=FIRST_ROUND_SHARE)


@dataclass(frozen=True)
class Refinement(Direction):
    """Direction in coordinates that a first round has whitened."""

    senders: Senders = SECOND_SENDERS
    name: str = "refinement"
    stage: str = "refine"
    fields: tuple[str, ...] = (*PUBLISHED_NAMES, "matrix", "centre")
    who: str = "client of the second round"
    detail: str = "in the new coordinates"

    def task(self, base_task: Task, read: TableReader) -> Task:
        """Return the first round's task with the whitening that came of it."""
        whitening = read("whiten", "whitening")
        return self._with_whitening(
            base_task, Whitening(whitening["matrix"], whitening["centre"])
        )

    def nominal_task(self, base_task: Task) -> Task:
        """Return a task whose coordinates are turned, stretched and moved."""
        d = base_task.encoding.d
        matrix = np.eye(d) + np.triu(np.full((d, d), 0.5), 1)
        first = super().nominal_task(base_task)
        return self._with_whitening(first, Whitening(matrix, np.full(d, 0.25)))

    def check_task(self, task: Task) -> None:
        """Refuse a whitening of another width, and all that `Direction` refuses."""
        super().check_task(task)
        whitening = self._whitening(task)
        if whitening.centre.shape != (task.encoding.d,):
            raise UserError(
                f"the whitening is of {whitening.centre.size} numbers; the encoding has"
                f" {task.encoding.d}."
            )

    def _with_whitening(self, base_task: Task, whitening: Whitening) -> Task:
        constants = {
            "matrix": whitening.matrix.tolist(),
            "centre": whitening.centre.tolist(),
        }
        return replace(
            base_task, asks=self.name, params={**base_task.params, **constants}
        )

    def _vectors(self, task: Task) -> Directions:
        return super()._vectors(task).whitened

    def _record_arrays(self, task: Task, data: ClientData) -> tuple[Array, Array]:
        z, code = super()._record_arrays(task, data)
        return self._whitening(task).apply(z), code

    def _whitening(self, task: Task) -> Whitening:
        return Whitening(
            np.asarray(task.params["matrix"]), np.asarray(task.params["centre"])
        )


FIRST_ROUND = Direction(
    senders=Senders(EVERYBODY.roles, end=FIRST_ROUND_SHARE),
    who="client of the first round",
    detail="to centre and whiten the numbers",
)
MESSAGES = {"report": FIRST_ROUND, "refinement": Refinement()}
