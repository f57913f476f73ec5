"""Task of private labels: one noised code of each label, of a public record.

Features and the names of records are public and no part of the task: a code depends on
its label only, so better features ask for no new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from curvote import validate
from curvote.classes import Classes
from curvote.errors import UserError
from curvote.labels.encoders import mechanism_name
from curvote.labels.task_form import FORMAT, parse_task
from curvote.mechanisms import make
from curvote.mechanisms.base import LabelMechanism
from curvote.privacy import Budget
from curvote.strict_json import canonical_json

PROTOCOL: Final = "labels"
ASKS: Final = "code"


@dataclass(frozen=True, eq=False)
class Task:
    """One noised code of one label for each record; every field is public.

    ``encoder`` is the mechanism (`auto` and short names are made concrete), ``params``
    its parameters beside epsilon and the number of classes. ``number`` counts the times
    that the same was asked.
    """

    classes: Classes
    epsilon: float
    encoder: str = "auto"
    params: Mapping[str, Any] = field(default_factory=dict)
    number: int = 1
    asks: str = ASKS
    protocol: str = PROTOCOL

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "classes", Classes(str(name) for name in self.classes))
        put(self, "epsilon", validate.positive(epsilon=self.epsilon))
        put(
            self,
            "encoder",
            mechanism_name(self.encoder, len(self.classes), self.epsilon),
        )
        validate.at_least(1, number=self.number)

    @property
    def mechanism(self) -> str:
        """Return the name of the mechanism that noises the label."""
        return self.encoder

    @property
    def candidates(self) -> None:
        """Return None: no candidate is up for a vote."""
        return

    def noise(self, **record_params: Any) -> LabelMechanism:
        """Return the mechanism; ``record_params`` are those that differ by record."""
        params = {"n_classes": len(self.classes), **self.params, **record_params}
        return cast(
            "LabelMechanism", make(self.encoder, epsilon=self.epsilon, **params)
        )

    def cost(self, n: int = 1) -> Budget:
        """Return what the code of each of ``n`` labels costs its owner."""
        validate.at_least(1, n=n)
        return Budget(self.epsilon)

    def for_server(self, server: str) -> Task:
        """Refuse (UserError): the task asks for labels of records, nobody by name."""
        raise UserError(
            f"the invitation is for {validate.format_value(server)}, but the task asks"
            " nobody"
            " by name."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values."""
        return {
            "format": FORMAT,
            "protocol": self.protocol,
            "asks": self.asks,
            "number": self.number,
            "classes": list(self.classes),
            "epsilon": self.epsilon,
            "encoder": self.encoder,
            "params": dict(self.params),
        }

    @classmethod
    def from_json(cls, text: Mapping[str, Any]) -> Task:
        """Build the task that `to_json` wrote; anything else is a UserError."""
        return cls(**parse_task(text))

    def digest(self) -> str:
        """Return the SHA-256 that names this task."""
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()
