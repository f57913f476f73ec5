"""Task of private labels: one noised code of each label, judged strictly when read.

A label that a mechanism cannot take would be refused by whoever has it, and silence
would tell it: so the classes alone say how many there are, no parameter does.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from curvote import validate
from curvote.errors import UserError
from curvote.labels.encoders import ENCODERS
from curvote.strict_json import describe_errors
from curvote.task_form import (
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
