"""Values against their form: what pydantic finds, in words and with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from curvote.errors import Problem, UserError, Where, did_you_mean
from curvote.run.config.form_words import said_of
from curvote.run.config.schema import form

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Any, where: Where) -> Model:
    """Return ``values`` as ``model``; all that is wrong is one UserError."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserError.several(problems_of(model, error, values, where)) from None


def problems_of(
    model: type[BaseModel], error: ValidationError, values: Any, where: Where
) -> Iterator[Problem]:
    """Yield what is wrong with ``values``, once for each place."""
    found: dict[Where, list[Any]] = {}
    for detail in error.errors(include_url=False):
        found.setdefault(_inside(detail, values), []).append(detail)
    for inside, details in found.items():
        yield Problem(_message(model, details, inside), (*where, *inside))


def _inside(detail: Any, values: Any) -> Where:
    """Return the path as the file has it: pydantic also names branches of unions."""
    *path, last = detail["loc"] or ("",)
    inside, here = [], values
    for part in path:
        if _holds(here, part):
            inside.append(part)
            here = here[part]
    if detail["type"] in ("missing", "extra_forbidden") or _holds(here, last):
        inside.append(last)
    return tuple(inside)


def _holds(values: Any, part: str | int) -> bool:
    if isinstance(values, Mapping):
        return part in values
    return isinstance(values, list) and isinstance(part, int) and part < len(values)


def _message(model: type[BaseModel], details: list[Any], inside: Where) -> str:
    kind = details[0]["type"]
    if kind == "extra_forbidden":
        return _unknown(str(inside[-1]), _fields(model, inside[:-1]))
    return "is missing." if kind == "missing" else said_of(details)


def _unknown(key: str, known: list[str]) -> str:
    name, colon, given = key.partition(":")
    if colon and name in known:
        return f"not known. Write a space after the colon: {name}: {given}."
    return f"not known.{did_you_mean(key, known)}"


def _fields(model: type[BaseModel], inside: Where) -> list[str]:
    """Return the keys that are known at a place inside ``model``."""
    for part in inside:
        model = form(model, str(part)) or model
    return list(model.model_fields)
