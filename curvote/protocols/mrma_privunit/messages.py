"""The report of `mrma_privunit`: that of `direct`, from the training clients alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from curvote.mechanisms.privunit import PrivUnit
from curvote.protocols.direct.messages import Direction
from curvote.protocols.message import Setting
from curvote.protocols.mrma.messages import Vote
from curvote.protocols.mrma_privunit.privatize import ARM
from curvote.protocols.roles import TRAINING, Senders
from curvote.task import Task


@dataclass(frozen=True)
class TrainingDirection(Direction):
    """A training client's y u, noised by `PrivUnit` with the whole budget."""

    senders: Senders = TRAINING

    def terms(self, setting: Setting) -> dict[str, Any]:
        """Return the intercept that the configuration states, beside the one arm."""
        params = {"arm": ARM, "intercept": setting("direct.intercept")}
        return {"mechanism": PrivUnit.name, "params": params}

    def least(self, config: Mapping[str, Any]) -> int:
        """Return how many reports one weak classifier is a mean of."""
        return int(config["train"]["size"])

    def rehearsal(self, stated: Task) -> Task:
        """Return the task itself, of the one arm."""
        given = {"intercept": "auto"} | dict(stated.params) | {"arm": ARM}
        mechanism = PrivUnit.name
        return self.task(replace(stated, mechanism=mechanism, params=given), {})


MESSAGES = {"report": TrainingDirection(), "vote": Vote()}
