"""The public task description: what a server publishes and every client obeys."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from curvote.errors import UserError
from curvote.representation.encoding import Encoding

FORMAT = 1


@dataclass(frozen=True)
class Task:
    """Encoding, mechanism and budget of one protocol run; every field is public.

    ``classes`` are the publisher's labels of -1 and +1. A training client spends
    ``epsilon`` on one report, an evaluation client spends ``epsilon`` on one vote.
    """

    encoding: Encoding
    classes: tuple[str, str]
    epsilon: float
    mechanism: str = "laplace"
    label_share: float | str = "equal"

    def to_json(self) -> dict[str, Any]:
        """Return the description as plain JSON values."""
        return {
            "format": FORMAT,
            "classes": list(self.classes),
            "epsilon": self.epsilon,
            "mechanism": self.mechanism,
            "label_share": self.label_share,
            "encoding": self.encoding.to_json(),
        }

    @classmethod
    def from_json(cls, text: dict[str, Any]) -> Task:
        """Build the task that `to_json` wrote; another format is a UserError."""
        if text.get("format") != FORMAT:
            raise UserError(
                f"task format is {text.get('format')!r}; this version reads {FORMAT}."
            )
        negative, positive = text["classes"]
        return cls(
            encoding=Encoding.from_json(text["encoding"]),
            classes=(negative, positive),
            epsilon=text["epsilon"],
            mechanism=text["mechanism"],
            label_share=text["label_share"],
        )

    def digest(self) -> str:
        """Return the SHA-256 that names this task."""
        text = json.dumps(self.to_json(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()
