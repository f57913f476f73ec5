"""The form of a published task for tables: judged strictly, before anything is read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from curvote import validate
from curvote.errors import UserError
from curvote.strict_json import describe_errors
from curvote.task_form import Epsilon, Number, Parameter, Word
from curvote.transfer.task import ASKS, FORMAT, PROTOCOL, Level

MOST_FEATURES = 1 << 10
MOST_SERVERS = 1 << 12
MOST_CLASSES = 1 << 10
MOST_PARAMETERS = 16

Delta = Annotated[float, Field(gt=0, lt=1)]


class _TaskDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    format: Literal[2]
    protocol: Literal["transfer"]
    asks: Literal["release"]
    number: Annotated[int, Field(ge=1, le=2**53)]
    classes: Annotated[list[Word], Field(min_length=2, max_length=MOST_CLASSES)]
    features: Annotated[
        list[Annotated[list[Any], Field(min_length=3, max_length=3)]],
        Field(min_length=1, max_length=MOST_FEATURES),
    ]
    servers: Annotated[
        dict[Word, Annotated[list[Any], Field(min_length=2, max_length=2)]],
        Field(min_length=1, max_length=MOST_SERVERS),
    ]
    release: Word
    params: Annotated[dict[Word, Parameter], Field(max_length=MOST_PARAMETERS)]
    seed: Annotated[int, Field(ge=0, le=2**53)]

    @model_validator(mode="after")
    def _check_nested(self) -> _TaskDocument:
        for fields in self.features:
            _FeatureDocument.model_validate(
                dict(zip(("name", "lower", "upper"), fields, strict=True))
            )
        for fields in self.servers.values():
            _LevelDocument.model_validate(
                dict(zip(("epsilon", "delta"), fields, strict=True))
            )
        return self


class _StrictDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


class _FeatureDocument(_StrictDocument):
    name: Word
    lower: Number
    upper: Number


class _LevelDocument(_StrictDocument):
    epsilon: Epsilon | Literal["public", "own"]
    delta: Delta | None


def parse_task(text: Any) -> dict[str, Any]:
    """Return the fields of a `Task` from JSON; a wrong document is a UserError."""
    format_value = text.get("format") if isinstance(text, dict) else None
    if (type(format_value), format_value) != (int, FORMAT):
        raise UserError(
            f"task format is {validate.format_value(format_value)}; a release is asked"
            f" in {FORMAT}."
        )
    try:
        values = _TaskDocument.model_validate(text).model_dump()
    except ValidationError as error:
        raise UserError(f"not a task: {describe_errors(error)}.") from None
    values["servers"] = {
        name: Level(*level) for name, level in values["servers"].items()
    }
    return {key: value for key, value in values.items() if key not in _CONSTANTS}


_CONSTANTS = {"format": FORMAT, "protocol": PROTOCOL, "asks": ASKS}
