"""The report of `mrma_privunit`: that of `direct`, from the training clients alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curvote.protocols.direct.messages import Direction, rehearsed, terms_of
from curvote.protocols.message import Setting
from curvote.protocols.mrma.messages import Vote
from curvote.protocols.roles import TRAINING, Senders
from curvote.representation.encoding import Encoding
from curvote.task import Task

ARM = "mean"


@dataclass(frozen=True)
class TrainingDirection(Direction):
    """A training client's y u, noised by `PrivUnit` with the whole budget."""

    senders: Senders = TRAINING
    who: str = "training client"
    binary: bool = True

    def terms(self, setting: Setting, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the one arm, with the configured intercept."""
        return terms_of(ARM, encoding, setting("direct.intercept"))

    def least(self, config: Mapping[str, Any]) -> int:
        """Return how many reports one weak classifier is a mean of."""
        return int(config["train"]["size"])

    def rehearsal(self, stated: Task) -> Task:
        """Return the task itself, of the one arm."""
        return rehearsed(stated, ARM)


MESSAGES = {"report": TrainingDirection(), "vote": Vote()}
