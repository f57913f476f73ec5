"""What a server publishes for a round of envelopes: the task, and invitations.

The task is public. An invitation goes to one client, over a private way: it is what
lets that client answer, once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from curvote.envelope import Invitation, issue
from curvote.errors import InternalError, UserError
from curvote.protocols.judging import judged
from curvote.protocols.message import messages
from curvote.run.config import Configured
from curvote.run.production import minimum, needed, round_of
from curvote.run.project import Project
from curvote.run.stages import released
from curvote.run.step import Step
from curvote.run.store import artifact, write_lines, write_text
from curvote.server.intake import Intake
from curvote.server.rounds import Round
from curvote.signed import ServerKey
from curvote.task import Task


@dataclass(frozen=True)
class Published:
    """A round that was opened: its two files, and how many envelopes it waits for."""

    task: Path
    invitations: Path
    waits_for: int


def publish(
    project: Project, configured: Configured, steps: tuple[Step, ...]
) -> Iterator[Published]:
    """Open the rounds whose inputs are there, and yield what was published."""
    for step in steps:
        waiting = step.action == "blocked" and step.release is not None
        if waiting and _ready(project, step) and not round_of(project, _round(step)):
            yield _open(project, configured, step)


def close_early(project: Project, configured: Configured) -> Round:
    """Close the open round of a pipeline with what it has, and return it closed.

    UserError: there is none, or it has fewer messages than the server can go on with.
    """
    name, pipeline = configured.name, configured.pipeline
    with Intake(project.intake) as intake:
        still_open = [r for r in intake.rounds(name) if not r.closed]
        if not still_open:
            raise UserError(
                f"{name} has no open round; `curvote run {name}` opens one."
            )
        last = still_open[-1]
        least = messages(pipeline.protocol)[last.asks].least(configured.values())
        if last.accepted < least:
            raise UserError(
                f"round {last.id} has {last.accepted} {last.asks}s; the server needs at"
                f" least {least} to go on. It stays open."
            )
        intake.close(last.id)
        closed = intake.round(last.id)
    if closed is None:
        raise InternalError(f"round {last.id} is gone")
    return closed


def _round(step: Step) -> str:
    return needed(step).id


def _ready(project: Project, step: Step) -> bool:
    return all(
        artifact(project, *source).problem(content=True) is None
        for source in step.sources.values()
    )


def _open(project: Project, configured: Configured, step: Step) -> Published:
    inputs = {n: artifact(project, *at) for n, at in step.sources.items()}
    task = judged(released.task_of(inputs, step.params).to_json())  # as clients will
    folder = project.published(configured.name)
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{task.asks}-{task.number}"
    public, secret = folder / f"{stem}.task.json", folder / f"{stem}.invitations.jsonl"
    senders = messages(task.protocol)[task.asks].senders
    invited = senders.count(configured.pipeline.clients.model_dump())
    key = server_key(project)
    invitations = _invitations(secret, task, invited, key.fingerprint)
    least = minimum(configured, step)
    with Intake(project.intake) as intake:
        intake.open_round(
            _round(step),
            pipeline=configured.name,
            task=task,
            needed=least,
            invitations=invitations,
        )
    document = {"task": task.to_json(), "seal_to": None}
    write_text(public, key.sign(document).decode())
    return Published(public, secret, least)


def server_key(project: Project) -> ServerKey:
    """Return the key that the project's tasks are signed with, made if needed."""
    return ServerKey.at(project.state / "server.key")


def _invitations(path: Path, task: Task, count: int, server: str) -> list[Invitation]:
    """Issue invitations, or go on with those that a killed run has written down."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        known = [Invitation.from_json(json.loads(line)) for line in lines]
        if known and all(invitation.task == task.digest() for invitation in known):
            return known
    issued = issue(task, count, server)
    write_lines(path, [invitation.to_json() for invitation in issued])
    return issued
