"""Validation of settings against their pydantic models, with messages for users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ValidationError

from curvote.errors import KeyPath, Problem, UserError, did_you_mean
from curvote.run.config.form_words import describe_errors, kind_in_words
from curvote.run.config.schema import section_model

Model = TypeVar("Model", bound=BaseModel)


def validate_settings(model: type[Model], values: Any, where: KeyPath) -> Model:
    """Return ``values`` as ``model``; one UserError holds all its problems."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserError.several(
            validation_problems(model, error, values, where)
        ) from None


def validation_problems(
    model: type[BaseModel], error: ValidationError, values: Any, where: KeyPath
) -> Iterator[Problem]:
    """Yield a problem for each place at which ``values`` do not fit ``model``."""
    by_place: dict[KeyPath, list[Any]] = {}
    for detail in error.errors(include_url=False):
        by_place.setdefault(_error_place(detail, values), []).append(detail)
    for inside, details in by_place.items():
        yield Problem(_problem_message(model, details, inside), (*where, *inside))


def _error_place(detail: Any, values: Any) -> KeyPath:
    """Return the path of an error in the file, without branches of unions."""
    *path, last = detail["loc"] or ("",)
    inside, values_inside = [], values
    for part in path:
        if _has_item(values_inside, part):
            inside.append(part)
            values_inside = values_inside[part]
    if detail["type"] in ("missing", "extra_forbidden") or _has_item(
        values_inside, last
    ):
        inside.append(last)
    return tuple(inside)


def _has_item(values: Any, part: str | int) -> bool:
    if isinstance(values, Mapping):
        return part in values
    return isinstance(values, list) and isinstance(part, int) and part < len(values)


def _problem_message(
    model: type[BaseModel], details: list[Any], inside: KeyPath
) -> str:
    kind = details[0]["type"]
    if kind == "extra_forbidden":
        return _unknown_key_message(str(inside[-1]), _known_keys(model, inside[:-1]))
    if kind == "missing":
        hint = _missing_key_hint(_model_at(model, inside[:-1]), str(inside[-1]))
        return f"is missing.{hint}"
    return describe_errors(details)


def _unknown_key_message(key: str, keys: list[str]) -> str:
    name, colon, value = key.partition(":")
    if colon and name in keys:
        return f"not known. Write a space after the colon: {name}: {value}."
    return f"not known.{did_you_mean(key, keys)}"


def _known_keys(model: type[BaseModel], inside: KeyPath) -> list[str]:
    """Return the keys of the model at a place inside ``model``."""
    return list(_model_at(model, inside).model_fields)


def _model_at(model: type[BaseModel], inside: KeyPath) -> type[BaseModel]:
    for part in inside:
        model = section_model(model, str(part)) or model
    return model


def _missing_key_hint(model: type[BaseModel], key: str) -> str:
    """Return a hint what to write for a missing key, as its model requires."""
    inner = section_model(model, key)
    if inner:
        fields = inner.model_fields.items()
        required = [name for name, field in fields if field.is_required()]
        return f" Write {key}: {{{': ..., '.join(required)}: ...}}." if required else ""
    field = model.model_fields.get(key)
    kind = field.annotation if field else None
    wanted = kind_in_words(get_origin(kind) or kind)
    return f" Write {key}: and {wanted}." if wanted else ""
