"""What a task makes a client send, in words and before any record is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from curvote.client.words import printable
from curvote.entropy import SeededEntropy
from curvote.protocols.message import knowledge, message_of, row
from curvote.task import Task


def described(task: Task, about: int | None) -> str:
    """Return such words as ``report (5 numbers, a class of iy/sh)``.

    The numbers are counted in a message about nobody, whose noise has a seed: not a
    word of the operating system's entropy is used.
    """
    nobody = np.zeros((1, task.encoding.projection.matrix.shape[1]))
    judge = None if about is None else np.array([about])
    known = knowledge(task, nobody, np.ones(1), judge)
    message = message_of(task)
    sent = row(message.draw(task, known, SeededEntropy(0)), 0)
    classes = "/".join(map(printable, task.classes))
    noised_first = sorted(sent.items(), key=lambda item: item[0] == "learner")
    parts = [_part(name, value, classes) for name, value in noised_first]
    if "label" not in sent:
        parts.append(f"classes {classes}")
    return f"{message.name} ({', '.join(parts)})"


def _part(name: str, value: Any, classes: str) -> str:
    if isinstance(value, list):
        return f"{len(value)} number{'s' * (len(value) != 1)}"
    if name == "label":
        return f"a class of {classes}"
    if name == "learner":
        return f"about candidate {value}"
    return "one bit"
