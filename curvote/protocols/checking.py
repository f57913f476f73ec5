"""Checks of many messages of one task together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curvote.errors import UserError
from curvote.protocols.message import (
    Message,
    message_of,
    parse_payload,
    payload_columns,
)
from curvote.protocols.payloads import positive_zeros
from curvote.task import AnyTask

Submission = tuple[int | str | None, Mapping[str, Any]]


def parse_messages(
    task: AnyTask, submissions: Sequence[Submission]
) -> list[dict[str, Any] | UserError]:
    """Return for each (about, payload) its normalized message, or the error.

    Values are held against the mechanism in one call for all messages of one shape.
    """
    message = message_of(task)
    results = [
        _parse_or_error(message, about, payload) for about, payload in submissions
    ]
    by_shape: dict[Any, list[int]] = {}
    for place, result in enumerate(results):
        if not isinstance(result, UserError):
            by_shape.setdefault(_payload_shape(result), []).append(place)
    for places in by_shape.values():
        payloads = [
            result for p in places if not isinstance(result := results[p], UserError)
        ]
        possible = _possible_flags(message, task, payloads)
        for place, result, is_possible in zip(places, payloads, possible, strict=True):
            results[place] = (
                positive_zeros(result)
                if is_possible
                else _check_single(message, task, result)
            )
    return results


def _parse_or_error(
    message: Message, about: int | str | None, payload: Mapping[str, Any]
) -> dict[str, Any] | UserError:
    try:
        return parse_payload(message, about, payload)
    except UserError as error:
        return error


def _payload_shape(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the lengths and types of values, which messages of an array share."""
    return tuple(
        len(value) if isinstance(value, list) else type(value)
        for value in payload.values()
    )


def _possible_flags(
    message: Message, task: AnyTask, payloads: list[dict[str, Any]]
) -> Sequence[bool]:
    """Return for each message whether it is certainly possible."""
    if message.per_table:  # a sender's table is checked in its own words
        return [False] * len(payloads)
    try:
        flags: list[bool] = message.possible_mask(
            task, payload_columns(payloads)
        ).tolist()
    except UserError:
        return [False] * len(payloads)
    return flags


def _check_single(
    message: Message, task: AnyTask, payload: dict[str, Any]
) -> dict[str, Any] | UserError:
    try:
        message.check_message(task, payload)
    except UserError as error:
        return error
    return positive_zeros(payload)
