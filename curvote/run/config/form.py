"""Values against their form: what pydantic finds, in words and with its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from curvote.errors import Problem, UserError, Where, did_you_mean
from curvote.run.config.schema import form

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Any, where: Where) -> Model:
    """Return ``values`` as ``model``; all that is wrong is one UserError."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserError.several(_problems(model, error, where)) from None


def _problems(
    model: type[BaseModel], error: ValidationError, where: Where
) -> Iterable[Problem]:
    for detail in error.errors(include_url=False):
        inside = tuple(p for p in detail["loc"] if p not in _UNION_TAGS)
        yield Problem(_message(model, detail, inside), (*where, *inside))


# pydantic names the branch of a union in the path; the file has no such key.
_UNION_TAGS = {
    *("float", "list[float]", "function-after", "constrained-float"),
    *("a-word", "a-number"),
}


def _message(model: type[BaseModel], detail: Any, inside: Where) -> str:
    given = detail["input"]
    if detail["type"] == "extra_forbidden":
        return f"not known.{did_you_mean(str(inside[-1]), _fields(model, inside[:-1]))}"
    if detail["type"] == "missing":
        return "is missing."
    return f"{detail['msg'].removeprefix('Value error, ')} (given: {given!r})."


def _fields(model: type[BaseModel], inside: Where) -> list[str]:
    """Return the keys that are known at a place inside ``model``."""
    for part in inside:
        model = form(model, str(part)) or model
    return list(model.model_fields)
