"""Task of private labels: one noised code of each label, judged strictly when read.

A label that a mechanism cannot take would be refused by whoever has it, and silence
would tell it: so the classes alone say how many there are, no parameter does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from curvote.base import validate
from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import make
from curvote.systems.labels.codes.encoders import ENCODERS, mechanism_name
from curvote.wire.strict_json import canonical_json, describe_errors
from curvote.wire.task import (
    MOST_CLASSES,
    MOST_PARAMETERS,
    Epsilon,
    Parameter,
    Word,
    confusable_form,
)

# What a mechanism is told by the rest of a task, or knows of each record by itself.
RESERVED_PARAMS = ("epsilon", "n_classes", "prior")

FORMAT: Final = 3


class _TaskDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    format: Literal[3]
    protocol: Word
    asks: Word
    number: Annotated[int, Field(ge=1, le=2**53)]
    classes: Annotated[list[Word], Field(min_length=2, max_length=MOST_CLASSES)]
    epsilon: Epsilon
    encoder: Word
    params: Annotated[dict[Word, Parameter], Field(max_length=MOST_PARAMETERS)]

    @model_validator(mode="after")
    def _check_fields(self) -> _TaskDocument:
        if len({confusable_form(word) for word in self.classes}) < len(self.classes):
            raise ValueError("classes must be different words")
        if self.encoder not in ENCODERS:
            names = ", ".join(ENCODERS)
            raise ValueError(f"encoder must be one of {names}, by its full name")
        twice = [name for name in RESERVED_PARAMS if name in self.params]
        if twice:
            raise ValueError(f"params must not hold {twice[0]}")
        return self


def parse_task(text: Any) -> dict[str, Any]:
    """Return the fields of a `Task` document; UserErrors say what is wrong, where."""
    version = text.get("format") if isinstance(text, dict) else None
    if (type(version), version) != (int, FORMAT):
        raise UserError(
            f"task format is {validate.format_value(version)}; a label is asked in"
            f" {FORMAT}."
        )
    try:
        fields = _TaskDocument.model_validate(text).model_dump()
    except ValidationError as error:
        raise UserError(f"not a task: {describe_errors(error)}.") from None
    return {key: value for key, value in fields.items() if key != "format"}


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
