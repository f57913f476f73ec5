"""The report of `mrma_privunit`: that of `direct`, from the training clients alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curvote.curves.encoding import Encoding
from curvote.messages.message import SettingReader
from curvote.messages.roles import TRAINING, Senders
from curvote.systems.direct.messages import Direction, nominal_terms_task, task_terms
from curvote.systems.mrma.messages import JUDGEMENT, Vote
from curvote.wire.task import Task


@dataclass(frozen=True)
class TrainingDirection(Direction):
    """Noised direction of a training client, with the whole budget."""

    senders: Senders = TRAINING
    who: str = "training client"
    binary: bool = True

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the one arm, with the configured intercept."""
        return task_terms("mean", encoding, setting("direct.intercept"))

    def min_messages(self, config: Mapping[str, Any]) -> int:
        """Return how many reports one weak classifier is a mean of."""
        return int(config["train"]["size"])

    def nominal_task(self, base_task: Task) -> Task:
        """Return the task itself, of the one arm."""
        return nominal_terms_task(base_task, "mean")


MESSAGES = {"report": TrainingDirection(), "vote": Vote(), **JUDGEMENT}
