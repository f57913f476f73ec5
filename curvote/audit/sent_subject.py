"""Messages as subjects, about one record or a table."""

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
from curvote.protocols.message import ClientData
from curvote.validate import FloatArray


@dataclass(frozen=True, eq=False)
class SentSubject(Subject):
    """The complete message that one sender draws for a task.

    An input is a ``ClientData`` of its n >= 1 records; neighbours differ in one of
    them. Local privacy is n = 1 (`MessageSubject`), a server has a table
    (`TableSubject`).
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
        """Return a mask of the messages that an honest sender can send."""
        mask: NDArray[np.bool_] = self.message.possible_mask(self.task, outputs)
        return mask

    def loss(self) -> Loss:
        """Return the declared loss of the message, of all its parts."""
        return Loss(self.message.max_privacy_loss(self.task))

    def release(self, data: ClientData, entropy: Entropy) -> bytes:
        """Return the bytes of the messages drawn for ``given``."""
        columns = self.message.draw(self.task, data, entropy)
        return self.view(columns).tobytes()
