"""The form of a published task for labels: judged strictly, before anything is read.

A label that a mechanism cannot take would be refused by whoever has it, and silence
would tell it: so the classes alone say how many there are, no parameter does.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from curvote import validate
from curvote.errors import UserError
from curvote.labels.encoders import ENCODERS
from curvote.strict_json import said
from curvote.task_form import (
    MOST_CLASSES,
    MOST_PARAMETERS,
    Epsilon,
    Parameter,
    Word,
    looks,
)

# What a mechanism is told by the rest of a task, or knows of each record by itself.
TOLD = ("epsilon", "n_classes", "prior")

FORMAT: Final = 3


class _Written(BaseModel):
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
    def _fits(self) -> _Written:
        if len({looks(word) for word in self.classes}) < len(self.classes):
            raise ValueError("classes must be different words")
        if self.encoder not in ENCODERS:
            known = ", ".join(ENCODERS)
            raise ValueError(f"encoder must be one of {known}, by its full name")
        twice = [name for name in TOLD if name in self.params]
        if twice:
            raise ValueError(f"params must not hold {twice[0]}")
        return self


def written(text: Any) -> dict[str, Any]:
    """Return the fields of a `Task`, in their form; UserError: what is wrong, where."""
    given = text.get("format") if isinstance(text, dict) else None
    if (type(given), given) != (int, FORMAT):
        raise UserError(
            f"task format is {validate.shown(given)}; a label is asked in {FORMAT}."
        )
    try:
        told = _Written.model_validate(text).model_dump()
    except ValidationError as error:
        raise UserError(f"not a task: {said(error)}.") from None
    return {key: value for key, value in told.items() if key != "format"}
