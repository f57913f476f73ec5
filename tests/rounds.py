"""Small tasks, and honest clients that answer them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from curvote.entropy import SeededEntropy
from curvote.envelope import Invitation
from curvote.protocols.message import knowledge, message_of, row
from curvote.representation.basis import identity
from curvote.representation.encoding import Encoding
from curvote.task import Candidates, Task

ENCODING = Encoding(identity(4), "max_abs", feature_map="coefficients")
REPORTS = Task(encoding=ENCODING, classes=("no", "yes"), epsilon=1.0)
VOTES = replace(
    REPORTS,
    asks="vote",
    candidates=Candidates(np.ones((3, 4)), np.array([-1.0, 0.0, 1.0])),
)


def payload(task: Task, invitation: Invitation, seed: int = 0) -> dict[str, Any]:
    """Return what an honest client sends."""
    judge = None if invitation.about is None else np.array([invitation.about])
    curve = np.random.default_rng(seed).normal(size=(1, 4))
    known = knowledge(task, curve, np.ones(1), judge)
    return row(message_of(task).draw(task, known, SeededEntropy(seed)), 0)


def edited(sealed: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return the envelope after a change by somebody without the key."""
    found = json.loads(sealed)
    change(found)
    return json.dumps(found).encode()
