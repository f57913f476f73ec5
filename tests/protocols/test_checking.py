"""Many messages checked together: what each would be told alone, whatever it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.messages.message import (
    ClientData,
    client_data,
    message_of,
    parse_message,
    parse_messages,
    payload_at,
)
from curvote.wire.task import Task
from tests.valid_tasks import tasks

NAMES = sorted(name for name in tasks() if name.endswith("-0"))
SIGNED = ("mrma", "online", "drift", "federated", "majority", "votes")
ODD = (2**53, -1, 0.5, True, None, "a", [1], {})


def known(task: Task) -> ClientData:
    """Return what one client can tell."""
    points = task.encoding.projection.matrix.shape[1]
    curve = np.random.default_rng(1).normal(size=(1, points))
    label = np.ones(1) if task.protocol in SIGNED else np.zeros(1, dtype=np.int64)
    judge = None if task.candidates is None else np.zeros(1, dtype=np.int64)
    return client_data(task, curve, label, judge)


def bent(sent: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message, and each value of it bent in many ways."""
    yield sent
    for name, value in sent.items():
        if not isinstance(value, list):
            yield from (sent | {name: odd} for odd in ODD)
            continue
        n = len(value)
        for odd in ([], value[:-1], value * 2, [value], [0] * n, [1e100] * n, [""] * n):
            yield sent | {name: odd}


def alone(task: Task, about: int | None, sent: dict[str, Any]) -> Any:
    """Return what a message is told that comes alone."""
    try:
        return parse_message(task, about, sent)
    except UserError as error:
        return str(error)


@pytest.mark.parametrize("name", NAMES)
def test_together_each_is_told_what_it_is_told_alone(name: str) -> None:
    """Of every message of every system: kept in the same form, or the same words."""
    task = tasks()[name]
    about = None if task.candidates is None else 0
    message = message_of(task)
    drawn = payload_at(message.draw(task, known(task), SeededEntropy(1)), 0)
    every = [(about, sent) for sent in bent(drawn)]
    told = [
        str(each) if isinstance(each, UserError) else each
        for each in parse_messages(task, every)
    ]
    assert told == [alone(task, *each) for each in every]
    assert told[0] == drawn
