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
from curvote.protocols.stages import released
from curvote.run.config.file import Configured
from curvote.run.plan.step import Step
from curvote.run.project import Project
from curvote.run.release.production import minimum, needed, round_of
from curvote.run.store.artifacts import artifact, write_lines, write_text
from curvote.sealed import new_key, public
from curvote.server.intake import Intake
from curvote.server.rounds import Round
from curvote.signed import ServerKey
from curvote.task import Asked


@dataclass(frozen=True)
class Published:
    """A round that was opened: its two files, and how many envelopes it waits for."""

    task: Path
    invitations: Path
    waits_for: int


def publish(
    project: Project, configured: Configured, steps: tuple[Step, ...]
) -> Iterator[Published]:
    """Open the rounds whose inputs are there, and yield what was published.

    Only clients elsewhere are invited: a release of clients that are here publishes
    nothing, whatever blocks it. An open round whose task is not there as this server
    signs it, such as one of an earlier version, is published again.
    """
    for step in steps:
        if step.release is None or not step.release.by_envelope:
            continue
        known = round_of(project, step.release.id)
        if known is None:
            if step.action == "blocked" and _ready(project, step):
                yield _open(project, configured, step)
        elif not known.closed and _sign(project, known):
            yield Published(*_places(project, known.pipeline, known.task), known.needed)


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


def _ready(project: Project, step: Step) -> bool:
    return all(
        artifact(project, *source).problem(content=True) is None
        for source in step.sources.values()
    )


def _open(project: Project, configured: Configured, step: Step) -> Published:
    inputs = {n: artifact(project, *at) for n, at in step.sources.items()}
    task = judged(released.task_of(inputs, step.params).to_json())  # as clients will
    waits, name = configured.pipeline.intake, needed(step).id
    signed, secret = _places(project, configured.name, task)
    signed.parent.mkdir(parents=True, exist_ok=True)
    senders = messages(task.protocol)[task.asks].senders
    invited = senders.count(configured.pipeline.clients.model_dump())
    server = server_key(project).fingerprint
    seal = new_key() if waits is not None and waits.sealed else None
    invitations = _invitations(secret, task, invited, server, seal)
    with Intake(project.intake) as intake:
        intake.open_round(
            name,
            pipeline=configured.name,
            task=task,
            needed=minimum(configured, step),
            invitations=invitations,
            seal=seal,
        )
        opened = intake.round(name)
    if opened is None:
        raise InternalError(f"round {name} is gone")
    _sign(project, opened)  # last: only now it is known what to seal to
    return Published(signed, secret, opened.needed)


def _places(project: Project, pipeline: str, task: Asked) -> tuple[Path, Path]:
    """Return where a round's task and its invitations are published."""
    stem = project.published(pipeline) / f"{task.asks}-{task.number}"
    return Path(f"{stem}.task.json"), Path(f"{stem}.invitations.jsonl")


def _sign(project: Project, opened: Round) -> bool:
    """Publish a round's task with the server's signature; False: it is there."""
    place, _ = _places(project, opened.pipeline, opened.task)
    document = {"task": opened.task.to_json(), "seal_to": opened.seal_to}
    text = server_key(project).sign(document).decode()
    if place.is_file() and place.read_bytes() == text.encode():
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    write_text(place, text)
    return True


def server_key(project: Project) -> ServerKey:
    """Return the key that the project's tasks are signed with, made if needed."""
    return ServerKey.at(project.state / "server.key")


def _invitations(
    path: Path, task: Asked, count: int, server: str, seal: str | None
) -> list[Invitation]:
    """Issue invitations, or go on with those that a killed run has written down.

    Sealed ones are issued anew: the key that those name went with the killed run.
    """
    if path.exists() and seal is None:
        lines = path.read_text(encoding="utf-8").splitlines()
        known = [Invitation.from_json(json.loads(line)) for line in lines]
        if known and all(_answers(invitation, task) for invitation in known):
            return known
    issued = issue(task, count, server, public(seal) if seal else None)
    write_lines(path, [invitation.to_json() for invitation in issued])
    return issued


def _answers(invitation: Invitation, task: Asked) -> bool:
    return invitation.task == task.digest() and invitation.seal_to is None
