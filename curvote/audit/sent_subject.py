"""What leaves a sender, whole: what messages about a record and a table have alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.audit.subject import Loss, Subject
from curvote.chain.stage import Columns
from curvote.entropy import Entropy
from curvote.privacy import Budget
from curvote.protocols.message import Known
from curvote.validate import FloatArray


@dataclass(frozen=True, eq=False)
class SentSubject(Subject):
    """The complete message that one sender draws for a task.

    An input is a ``Known`` of its n >= 1 records; neighbours differ in one of them.
    Local privacy is n = 1 (`MessageSubject`), a server has a table (`TableSubject`).
    """

    task: Any
    message: Any
    name: str
    params: Mapping[str, Any]
    budget: Budget

    def together(self, outputs: list[Columns]) -> Columns:
        """Return the messages of several calls as those of one."""
        return {name: np.concatenate([o[name] for o in outputs]) for name in outputs[0]}

    def view(self, outputs: Columns) -> FloatArray:
        """Return all columns of numbers side by side, (n, k)."""
        numbers = [v for v in map(np.asarray, outputs.values()) if v.dtype.kind != "O"]
        return np.hstack([v.astype(np.float64).reshape(len(v), -1) for v in numbers])

    def possible(self, outputs: Columns) -> NDArray[np.bool_]:
        """Say which messages an honest sender can have sent."""
        found: NDArray[np.bool_] = self.message.possible(self.task, outputs)
        return found

    def loss(self) -> Loss:
        """Return what the message declares to lose, its parts together."""
        return Loss(self.message.worst_loss(self.task))

    def release(self, given: Known, entropy: Entropy) -> bytes:
        """Return the bytes of the messages that ``given`` leads to."""
        sent = self.message.draw(self.task, given, entropy)
        return self.view(sent).tobytes()
