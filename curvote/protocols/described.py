"""What a task makes a client send, in words and before any record is read."""

from __future__ import annotations

from curvote.client.words import printable
from curvote.protocols.message import message_of
from curvote.task import Asked


def described(task: Asked, about: int | None) -> str:
    """Return such words as ``report (5 numbers, a class of iy/sh)``.

    ``about`` is the candidate that the invitation asks about; None where it asks for
    none.
    """
    message = message_of(task)
    classes = "/".join(map(printable, task.classes))
    numbers, fields = message.numbers(task), message.payload.model_fields
    parts = [f"{numbers} number{'s' * (numbers > 1)}"] if numbers else []
    if about is not None:
        parts.append(f"one bit about candidate {about}")
    parts.append(f"{'a class of' if 'label' in fields else 'classes'} {classes}")
    return f"{message.name} ({', '.join(parts)})"
