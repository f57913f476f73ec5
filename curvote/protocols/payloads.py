"""Payloads: messages as JSON, in one form each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict


class Payload(BaseModel):
    """A message as JSON: nothing else, and no value of another kind."""

    model_config = ConfigDict(extra="forbid", strict=True)


def same_json(normalized: Any, original: Any) -> bool:
    """Say whether two JSON values are equal; 2 and 2.0 count as equal."""
    if isinstance(normalized, dict):
        return all(
            same_json(value, original[name]) for name, value in normalized.items()
        )
    if isinstance(normalized, list):
        return all(map(same_json, normalized, original))
    kinds = (int, float) if type(normalized) is float else (type(normalized),)
    return type(original) in kinds and bool(normalized == original)


def positive_zeros(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with 0.0 in place of -0.0.

    Whole numbers stay whole.
    """
    return {
        name: [number + 0 for number in value] if isinstance(value, list) else value
        for name, value in message.items()
    }


def describe_payload(payload: Mapping[str, Any]) -> str:
    """Describe a payload without its noised numbers."""
    return ", ".join(
        f"{len(value)} such numbers in {name}"
        if isinstance(value, list)
        else f"{name} {value}"
        for name, value in payload.items()
    )
