"""The real release of a client, asked for 1,000 times: ledger, envelope and outbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from curvote.audit import examples
from curvote.audit.reruns import Memo
from curvote.client import outbox
from curvote.client.register import books
from curvote.client.standing import POPULATION
from curvote.entropy import SeededEntropy
from curvote.envelope import issue, read
from curvote.protocols.message import knowledge, message_of, row
from curvote.task import Task
from curvote.validate import FloatArray

# The example's curve, on the grid of 30 points.
_CURVE = np.sin(np.linspace(0, 3, 30))[None]


def outbox_memo(name: str, epsilon: float) -> Memo:
    """Return the release of message ``outbox.<protocol>.<message>`` as a subject."""
    task = examples.named(name, epsilon)
    judge = None if task.candidates is None else np.zeros(1, dtype=np.int64)
    known = knowledge(task, _CURVE, np.ones(1), judge)
    truth = known.z[0] if judge is None else np.zeros(1)
    size = len(_numbers(_drawn(task, known, SeededEntropy(0))))
    return Memo(
        name,
        {"epsilon": epsilon},
        task.budget,
        np.resize(truth, size),
        lambda seed: _release(task, known, seed),
    )


def _release(task: Task, known: Any, seed: int) -> Callable[[], FloatArray]:
    """Return the function that asks one client, with a ledger of its own, once more."""
    entropy, folder = SeededEntropy(seed), TemporaryDirectory()
    invitation = issue(task, 1)[0]

    def again() -> FloatArray:
        home = Path(folder.name)
        with books(home / "ledger.sqlite", home / "register.sqlite") as opened:
            opened[0].set_up(POPULATION, task.budget)
            path = outbox.release(
                lambda: _drawn(task, known, entropy),
                task=task,
                invitation=invitation,
                sender="me",
                number=1,
                books=opened,
                outbox=home / "outbox",
            )
        return _numbers(read(path.read_bytes()).payload)

    return again


def _drawn(task: Task, known: Any, entropy: SeededEntropy) -> dict[str, Any]:
    return row(message_of(task).draw(task, known, entropy), 0)


def _numbers(payload: Mapping[str, Any]) -> FloatArray:
    """Return everything that a payload says, as one row of numbers."""
    parts = [np.ravel(np.asarray(payload[name], dtype=float)) for name in payload]
    return np.concatenate(parts)
