"""Class lists in a pipeline's source: names, or the word `all`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

ALL = "all"


def all_classes(names: tuple[Any, ...]) -> BeforeValidator:
    """Return the validator that takes the word `all` for all class names."""
    literal: Any = Literal.__getitem__(names)
    form = list[literal] | Literal["all"]  # what an editor offers
    return BeforeValidator(lambda given: names if given == ALL else given, form)


def _refuse_all(value: Any) -> Any:
    """Return the list; refuse the word `all` where no list is published."""
    if value == ALL:
        message = (
            "list the names: nobody published them, and a list that is taken from"
            " private records is not public"
        )
        raise PydanticCustomError("private", message)
    return value


def _check_distinct(classes: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    if len(classes) < 2:
        raise PydanticCustomError("few", "name two or more")
    if len({*classes}) < len(classes):
        raise PydanticCustomError("repeated", "name each class once")
    return classes


# Of records that nobody published, the word `all` says nothing.
EXPLICIT_CLASSES = BeforeValidator(_refuse_all)
DISTINCT_CLASSES = AfterValidator(_check_distinct)


def check_one_way(parameters: Any, *short: str) -> None:
    """Refuse a list of classes beside the ``short`` form of two classes."""
    stated_fields = parameters.model_fields_set & {*short}
    beside = any(getattr(parameters, name) is not None for name in stated_fields)
    if parameters.classes is not None and beside:
        message = f"give classes, or {' and '.join(short)}"
        raise PydanticCustomError("both", message)
