"""A server that asks for what the browser's client answers, and whom it invites."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from curvote.curves.encoding import Encoding
from curvote.intake.box import Intake
from curvote.messages.message import parse_message
from curvote.systems.direct.messages import task_terms
from curvote.systems.labels.messages import single_round_task
from curvote.systems.monitor.messages import TASK_SETTINGS, make_task
from curvote.wire.envelope import (
    Invitation,
    issue_invitations,
    issue_record_invitations,
)
from curvote.wire.task import Candidates, Task
from tests import rounds
from tests.vectors.envelope import KEY, curve, report_task, vote_task

TASKS = {"report": report_task(), "vote": vote_task()}


def direct_task(arm: str, n_classes: int, epsilon: float, rescale: str) -> Task:
    """Return a task of `direct` about the same curves."""
    old = TASKS["report"].encoding
    encoding = Encoding(old.projection, rescale, old.constants, "rescaled")
    classes = tuple(f"c{i}" for i in range(n_classes))
    task = replace(TASKS["report"], protocol="direct", classes=classes, epsilon=epsilon)
    return replace(task, encoding=encoding, **task_terms(arm, encoding, "auto"))


def halving_task(n_classes: int) -> Task:
    """Return a task of `votes` about the same curves and 16 candidates."""
    classes, old = tuple(f"c{i}" for i in range(n_classes)), TASKS["vote"].candidates
    up = Candidates(np.tile(old.coef, (8, 1)), np.tile(old.intercept, 8))
    return replace(TASKS["vote"], protocol="votes", classes=classes, candidates=up)


MONITOR_TERMS = dict.fromkeys(TASK_SETTINGS) | {"bins": 5, "classes": ("no", "yes")}
# Of other protocols of one round.
OTHERS: dict[str, Any] = {
    "direct": direct_task("joint", 3, 2.0, "standard"),
    "votes": halving_task(3),
    "labels": single_round_task(["a", "b", "c", "d"], 0.5, "subset"),
    "monitor": make_task({**MONITOR_TERMS, "question": "right"}, 1.0),
}


@dataclass
class Server:
    """A round that waits for ``invited`` clients, in a folder of its own."""

    folder: Path
    task: Task
    invited: int = 4
    invitations: list[Invitation] = field(init=False)

    def __post_init__(self) -> None:
        names, by = [f"p{i}" for i in range(self.invited)], KEY.fingerprint
        self.invitations = list(
            issue_record_invitations(self.task, names, by)
            if self.task.protocol == "labels"
            else issue_invitations(self.task, self.invited, by)
        )
        with Intake(self.place) as intake:
            more = {"pipeline": "p", "needed": self.invited, "task": self.task}
            intake.open_round("one", **more, invitations=self.invitations)

    @property
    def place(self) -> Path:
        """Where the intake is."""
        return self.folder / "intake.sqlite"

    @property
    def line(self) -> str:
        """The task as it is published."""
        return signed(self.task.to_json())

    def take(self, line: str) -> None:
        """Take an envelope in, as `curvote intake take` does."""
        with Intake(self.place) as intake:
            intake.take(line.encode(), parse_message)

    def taken(self) -> list[dict[str, Any]]:
        """Return the messages, once all have come."""
        with Intake(self.place) as intake:
            (kept,) = rounds.kept(intake, "one", intake.close("one"))
        return list(kept)

    def files(self, number: int = 0) -> list[Path]:
        """Return what a person has in hand: the task, an invitation and a curve."""
        import json

        texts = {
            "task.json": self.line,
            "invitation.json": json.dumps(self.invitations[number].to_json()),
            "curve.csv": "\n".join(map(str, curve().tolist())) + "\n",
        }
        for name, text in texts.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        return [self.folder / name for name in texts]


def signed(task: dict[str, Any], seal_to: str | None = None) -> str:
    """Return any task, also one that no client answers, as its server publishes it."""
    return KEY.sign({"task": task, "seal_to": seal_to}).decode()


def with_epsilon(asks: str, epsilon: float) -> Task:
    """Return a task at another epsilon."""
    return replace(TASKS[asks], epsilon=epsilon)


def bent(asks: str, path: str, value: Any) -> dict[str, Any]:
    """Return a task as JSON with another ``value`` at a dotted path."""
    task: Any = TASKS[asks].to_json()
    *outer, last = path.split(".")
    inner = task
    for key in outer:
        inner = inner[int(key)] if isinstance(inner, list) else inner[key]
    inner[int(last) if isinstance(inner, list) else last] = value
    return dict(task)


def identity_rows(d: int) -> list[list[float]]:
    """Return the matrix of a basis that this client does not know."""
    return np.eye(d).tolist()
