"""Whatever a steward writes into a task: refused, or the release hides a record."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.messages.answer import validate_task
from curvote.messages.message import ClientData, message_of
from curvote.systems.transfer.method.task import FORMS, Task, form

ODD: list[Any] = [1, 2, 1e-9, 1e9, 64, 1e-300, 5e-324, 1e15, -1, 0, True, [0.0, 1.0]]
BOUNDS = [(0, 1e-300), (0, 5e-324), (-1e12, 1e12), (1e11, 1e11 + 1), (-1e308, 1e308)]
JUNK = [None, -1, 2**53, "", "x" * 5000, [], {}, [1], 1e308, "public", "own"]
SENT = [name for name in FORMS if not form(name).study]


def plain(name: str) -> dict[str, Any]:
    """Return a task as a steward writes it."""
    features: Any = [("age", 20, 90), ("chol", 100, 400)]
    task = Task(features, ("no", "yes"), {"a": 2.0, "b": 1.0}, name)  # type: ignore[arg-type]
    return task.to_json()


def bent(task: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a task with odd parameters and bounds, and now and then with junk."""
    told = copy.deepcopy(task)
    for name in told["params"]:
        if rng.random() < 0.4:
            told["params"][name] = rng.choice(ODD)
    if rng.random() < 0.4:
        told["features"][0][1:] = rng.choice(BOUNDS)
    if rng.random() < 0.2:
        told[rng.choice(list(told))] = rng.choice(JUNK)
    return told


@pytest.mark.parametrize("name", SENT)
def test_a_bent_task_is_refused_or_hides_every_record(name: str) -> None:
    """No crash, and no two neighbours are further apart than the noise is made for."""
    rng, taken = random.Random(name), 0
    ages = [-1e308, 0.0, 1e-300, 50.0, 1e15, 1e308]
    X = np.array([[rng.choice(ages), rng.gauss(200, 80)] for _ in range(20)])
    y = np.arange(20.0) % 2
    other = X.copy(), y.copy()
    other[0][0], other[1][0] = [1e308, 100], 1 - y[0]
    for _ in range(150):
        try:
            task: Any = validate_task(bent(plain(name), rng), "a")
        except UserError:
            continue
        taken += 1
        message: Any = message_of(task)
        one, two = (message.sums(task, ClientData(x, x, c)) for x, c in ((X, y), other))
        apart = np.linalg.norm((one - two).astype(float))
        assert apart <= form(name).sensitivity(task) * (1 + 1e-12)
    assert taken > 3
