"""Messages of `joined`, as `direct`, and of `whitened`; `volunteers` has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from curvote.curves.encoding import Encoding
from curvote.messages.message import Message, SettingReader, TableReader
from curvote.messages.roles import EVERYBODY, Senders
from curvote.systems.direct.messages import (
    JUDGEMENT,
    MESSAGES,
    Refinement,
    task_terms,
)
from curvote.wire.task import Task

WHITENED_PROTOCOL: Final = "whitened"


@dataclass(frozen=True)
class HalfWhitened(Refinement):
    """Direction in coordinates that volunteers' public records have half whitened."""

    senders: Senders = EVERYBODY
    name: str = "report"
    stage: str = "privatize"
    who: str = "every client"
    detail: str = "with all of epsilon, in coordinates that volunteers' records make"

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the label moment alone: volunteers have the other."""
        return task_terms("mean", encoding, "auto")

    def task(self, base_task: Task, read: TableReader) -> Task:
        """Return the base task with the coordinates of the volunteers."""
        from curvote.learning.whitened import half_whitening  # no client needs it

        numbers = read("publish_numbers", "public_numbers")["z"]
        return self._with_whitening(base_task, half_whitening(numbers))


MESSAGES_BY_SYSTEM: Final[Mapping[str, Mapping[str, Message]]] = {
    "volunteers": {},
    "joined": MESSAGES,
    WHITENED_PROTOCOL: {"report": HalfWhitened(), **JUDGEMENT},
}
