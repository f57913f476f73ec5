"""The messages of two rounds: a direction, and one in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from curvote.errors import UserError
from curvote.protocols.direct.arms import FIRST, PUBLISHED
from curvote.protocols.direct.messages import Direction
from curvote.protocols.message import Known, Read
from curvote.protocols.roles import EVERYBODY, Senders
from curvote.representation.direction import Directions, Whitening
from curvote.task import Task

Array = NDArray[np.float64]


SECOND = Senders(EVERYBODY.roles, start=FIRST)


@dataclass(frozen=True)
class Refinement(Direction):
    """The same in coordinates that a first round of other clients has whitened."""

    senders: Senders = SECOND
    name: str = "refinement"
    stage: str = "refine"
    fields: tuple[str, ...] = (*PUBLISHED, "matrix", "centre")
    who: str = "client of the second round"
    detail: str = "in the new coordinates"

    def task(self, stated: Task, read: Read) -> Task:
        """Return the first round's task with the whitening that came of it."""
        made = read("whiten", "whitening")
        return self._with(stated, Whitening(made["matrix"], made["centre"]))

    def rehearsal(self, stated: Task) -> Task:
        """Return a task whose coordinates are turned, stretched and moved."""
        d = stated.encoding.d
        matrix = np.eye(d) + np.triu(np.full((d, d), 0.5), 1)
        first = super().rehearsal(stated)
        return self._with(first, Whitening(matrix, np.full(d, 0.25)))

    def admit(self, task: Task) -> None:
        """Refuse whitened coordinates of another number, beside all else."""
        super().admit(task)
        made = self._whitening(task)
        if made.centre.shape != (task.encoding.d,):
            raise UserError(
                f"the whitening is of {made.centre.size} numbers; the encoding has"
                f" {task.encoding.d}."
            )

    def _with(self, stated: Task, made: Whitening) -> Task:
        own = {"matrix": made.matrix.tolist(), "centre": made.centre.tolist()}
        return replace(stated, asks=self.name, params={**stated.params, **own})

    def _vectors(self, task: Task) -> Directions:
        return super()._vectors(task).whitened

    def _record(self, task: Task, known: Known) -> tuple[Array, Array]:
        z, code = super()._record(task, known)
        return self._whitening(task).apply(z), code

    def _whitening(self, task: Task) -> Whitening:
        return Whitening(
            np.asarray(task.params["matrix"]), np.asarray(task.params["centre"])
        )


FIRST_ROUND = Direction(
    senders=Senders(EVERYBODY.roles, end=FIRST),
    who="client of the first round",
    detail="to centre and whiten the numbers",
)
MESSAGES = {"report": FIRST_ROUND, "refinement": Refinement()}
