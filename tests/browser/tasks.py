"""A server that asks for what the browser's client answers, and whom it invites."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from curvote.intake.box import Intake
from curvote.messages.message import parse_message
from curvote.wire.envelope import Invitation, issue_invitations
from curvote.wire.task import Task
from tests.vectors.envelope import KEY, curve, report_task, vote_task

TASKS = {"report": report_task(), "vote": vote_task()}


@dataclass
class Server:
    """A round that waits for ``invited`` clients, in a folder of its own."""

    folder: Path
    task: Task
    invited: int = 4
    invitations: list[Invitation] = field(init=False)

    def __post_init__(self) -> None:
        self.invitations = list(
            issue_invitations(self.task, self.invited, KEY.fingerprint)
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
            (kept,) = intake.payloads("one", intake.close("one"))
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
