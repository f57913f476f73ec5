"""What a task makes a client send, in words and before any record is read."""

from __future__ import annotations

from curvote.client.words import listed, printable
from curvote.protocols.message import message_of
from curvote.task import Asked


def described(task: Asked, about: int | str | None) -> str:
    """Return such words as ``report (5 numbers, a class of iy/sh)``.

    ``about`` is the candidate or the public record that the invitation asks about; None
    where it asks for none.
    """
    message = message_of(task)
    numbers, fields = message.numbers(task), message.payload.model_fields
    parts = [f"{numbers} number{'s' * (numbers > 1)}"] if numbers else []
    if isinstance(about, int):
        parts.append(f"one bit about candidate {about}")
    one = message.tied or "label" in fields
    parts.append(f"{'a class of' if one else 'classes'} {listed(task.classes)}")
    if isinstance(about, str):
        parts.append(f"public record {printable(about)}")
    return f"{message.name} ({', '.join(parts)})"
