"""Messages in words: what a task makes a client send."""

from __future__ import annotations

from curvote.client.words import format_names, printable_name
from curvote.protocols.message import message_of
from curvote.task import AnyTask


def describe_answer(task: AnyTask, about: int | str | None) -> str:
    """Return words for an answer, as ``report (5 numbers, a class of iy/sh)``.

    ``about`` is the candidate or the public record that the invitation asks about; None
    where it asks for none.
    """
    message = message_of(task)
    numbers, fields = message.count_numbers(task), message.payload.model_fields
    parts = [f"{numbers} number{'s' * (numbers > 1)}"] if numbers else []
    if isinstance(about, int):
        parts.append(f"one bit about candidate {about}")
    single_class = message.per_record or "label" in fields
    parts.append(
        f"{'a class of' if single_class else 'classes'} {format_names(task.classes)}"
    )
    if isinstance(about, str):
        parts.append(f"public record {printable_name(about)}")
    return f"{message.name} ({', '.join(parts)})"
