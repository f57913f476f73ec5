"""How a pipeline lists the classes of its source: by name, or all of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

ALL = "all"


def all_of(every: tuple[Any, ...]) -> BeforeValidator:
    """Return what takes the word `all` for ``every`` class in the publisher's order."""
    one: Any = Literal.__getitem__(every)
    form = list[one] | Literal["all"]  # what an editor offers
    return BeforeValidator(lambda given: every if given == ALL else given, form)


def _stated(given: Any) -> Any:
    if given == ALL:
        said = (
            "list the names: nobody published them, and a list that is taken from"
            " private records is not public"
        )
        raise PydanticCustomError("private", said)
    return given


def _once(classes: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    if len(classes) < 2:
        raise PydanticCustomError("few", "name two or more")
    if len({*classes}) < len(classes):
        raise PydanticCustomError("repeated", "name each class once")
    return classes


# Of records that nobody published, the word `all` says nothing.
STATED = BeforeValidator(_stated)
ONCE = AfterValidator(_once)


def check_one_way(parameters: Any, *short: str) -> None:
    """Refuse a list of classes beside the ``short`` form for two of them."""
    stated = parameters.model_fields_set & {*short}
    beside = any(getattr(parameters, name) is not None for name in stated)
    if parameters.classes is not None and beside:
        said = f"give classes, or {' and '.join(short)}"
        raise PydanticCustomError("both", said)
