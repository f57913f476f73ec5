"""Outbox of a client under repeated requests: ledger, envelope and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from curvote.audit import examples
from curvote.audit.reruns import Memo
from curvote.client import outbox
from curvote.client.register import open_books
from curvote.client.standing import POPULATION
from curvote.entropy import SeededEntropy
from curvote.envelope import issue_invitations, read_envelope
from curvote.protocols.message import client_data, message_of, payload_at
from curvote.task import Task
from curvote.validate import FloatArray

# The example's curve, on the grid of 30 points.
_CURVE = np.sin(np.linspace(0, 3, 30))[None]


def outbox_memo(name: str, epsilon: float) -> Memo:
    """Return the repeated release ``outbox.<protocol>.<message>``."""
    task = examples.task_named(name, epsilon)
    judge = None if task.candidates is None else np.zeros(1, dtype=np.int64)
    data = client_data(task, _CURVE, np.ones(1), judge)
    truth = data.z[0] if judge is None else np.zeros(1)
    size = len(_payload_numbers(_draw_payload(task, data, SeededEntropy(0))))
    return Memo(
        name,
        {"epsilon": epsilon},
        task.budget,
        np.resize(truth, size),
        lambda seed: _repeated_release(task, data, seed),
    )


def _repeated_release(task: Task, data: Any, seed: int) -> Callable[[], FloatArray]:
    """Return the function that asks one client once more."""
    entropy, folder = SeededEntropy(seed), TemporaryDirectory()
    invitation = issue_invitations(task, 1)[0]

    def release_again() -> FloatArray:
        home = Path(folder.name)
        with open_books(home / "ledger.sqlite", home / "register.sqlite") as opened:
            opened[0].set_cap(POPULATION, task.budget)
            path = outbox.release_message(
                lambda: _draw_payload(task, data, entropy),
                task=task,
                invitation=invitation,
                sender="me",
                number=1,
                books=opened,
                outbox=home / "outbox",
            )
        return _payload_numbers(read_envelope(path.read_bytes()).payload)

    return release_again


def _draw_payload(task: Task, data: Any, entropy: SeededEntropy) -> dict[str, Any]:
    return payload_at(message_of(task).draw(task, data, entropy), 0)


def _payload_numbers(payload: Mapping[str, Any]) -> FloatArray:
    """Return all numbers of a payload as one row."""
    parts = [np.ravel(np.asarray(payload[name], dtype=float)) for name in payload]
    return np.concatenate(parts)
