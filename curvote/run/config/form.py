"""Values against their form: what pydantic finds, in words and with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ValidationError

from curvote.errors import Problem, UserError, Where, did_you_mean
from curvote.run.config.form_words import kind_in_words, said_of
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
    if kind == "missing":
        return f"is missing.{_to_write(_form(model, inside[:-1]), str(inside[-1]))}"
    return said_of(details)


def _unknown(key: str, known: list[str]) -> str:
    name, colon, given = key.partition(":")
    if colon and name in known:
        return f"not known. Write a space after the colon: {name}: {given}."
    return f"not known.{did_you_mean(key, known)}"


def _fields(model: type[BaseModel], inside: Where) -> list[str]:
    """Return the keys that are known at a place inside ``model``."""
    return list(_form(model, inside).model_fields)


def _form(model: type[BaseModel], inside: Where) -> type[BaseModel]:
    for part in inside:
        model = form(model, str(part)) or model
    return model


def _to_write(model: type[BaseModel], key: str) -> str:
    """Return what to write for a key that is missing, as far as its form says it."""
    inner = form(model, key)
    if inner:
        fields = inner.model_fields.items()
        asked = [name for name, field in fields if field.is_required()]
        return f" Write {key}: {{{': ..., '.join(asked)}: ...}}." if asked else ""
    field = model.model_fields.get(key)
    kind = field.annotation if field else None
    wanted = kind_in_words(get_origin(kind) or kind)
    return f" Write {key}: and {wanted}." if wanted else ""
