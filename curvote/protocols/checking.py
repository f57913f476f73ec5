"""Many messages of one task, checked together: values as arrays, each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curvote.errors import UserError
from curvote.protocols.message import Message, formed, message_of, rows
from curvote.protocols.payloads import positive_zeros
from curvote.task import Asked

Sent = tuple[int | str | None, Mapping[str, Any]]


def check_all(task: Asked, sent: Sequence[Sent]) -> list[dict[str, Any] | UserError]:
    """Return for each (about, payload) what `message.check` returns, or raises.

    Values are held against the mechanism in one call for all messages of one shape.
    """
    message = message_of(task)
    told = [_formed(message, about, payload) for about, payload in sent]
    alike: dict[Any, list[int]] = {}
    for place, each in enumerate(told):
        if not isinstance(each, UserError):
            alike.setdefault(_shape(each), []).append(place)
    for places in alike.values():
        mine = [each for p in places if not isinstance(each := told[p], UserError)]
        good = _possible(message, task, mine)
        for place, each, fine in zip(places, mine, good, strict=True):
            told[place] = positive_zeros(each) if fine else _told(message, task, each)
    return told


def _formed(
    message: Message, about: int | str | None, payload: Mapping[str, Any]
) -> dict[str, Any] | UserError:
    try:
        return formed(message, about, payload)
    except UserError as error:
        return error


def _shape(sent: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what messages share that stand in one array."""
    return tuple(
        len(value) if isinstance(value, list) else type(value)
        for value in sent.values()
    )


def _possible(
    message: Message, task: Asked, sent: list[dict[str, Any]]
) -> Sequence[bool]:
    """Say for each whether it is certainly good; what is not is asked alone."""
    if message.whole:  # a sender's table is checked in its own words
        return [False] * len(sent)
    try:
        found: list[bool] = message.possible(task, rows(sent)).tolist()
    except UserError:
        return [False] * len(sent)
    return found


def _told(
    message: Message, task: Asked, sent: dict[str, Any]
) -> dict[str, Any] | UserError:
    try:
        message.refuse(task, sent)
    except UserError as error:
        return error
    return positive_zeros(sent)
