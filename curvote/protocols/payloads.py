"""Messages as JSON: one form of each, and words for one that is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict


class Payload(BaseModel):
    """A message as JSON: nothing else, and no value of another kind."""

    model_config = ConfigDict(extra="forbid", strict=True)


def same(sent: Any, given: Any) -> bool:
    """Say whether two JSON values are the same, whole numbers being floats, too."""
    if isinstance(sent, dict):
        return all(same(value, given[name]) for name, value in sent.items())
    if isinstance(sent, list):
        return all(map(same, sent, given))
    kinds = (int, float) if type(sent) is float else (type(sent),)
    return type(given) in kinds and bool(sent == given)


def positive_zeros(sent: dict[str, Any]) -> dict[str, Any]:
    """Return the message with 0.0 for -0.0: one value is not kept in two forms.

    Whole numbers stay whole.
    """
    return {
        name: [each + 0 for each in value] if isinstance(value, list) else value
        for name, value in sent.items()
    }


def shape(sent: Mapping[str, Any]) -> str:
    """Describe a payload without its noised numbers."""
    return ", ".join(
        f"{len(value)} such numbers in {name}"
        if isinstance(value, list)
        else f"{name} {value}"
        for name, value in sent.items()
    )
