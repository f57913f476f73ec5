"""What a server publishes for a round of envelopes: the task, and invitations.

The task is public. An invitation goes to one client, over a private way: it is what
lets that client answer, once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from curvote import signed
from curvote.chain import tasks as forms
from curvote.envelope import Invitation, issue, issue_each
from curvote.errors import InternalError, UserError
from curvote.protocols.judging import judged
from curvote.protocols.message import message_of, messages
from curvote.run.config.file import Configured
from curvote.run.plan.step import Step
from curvote.run.project import Project
from curvote.run.release.production import minimum, needed, records, round_of
from curvote.run.store.artifacts import artifact, write_lines, write_text
from curvote.sealed import new_key, public
from curvote.server.intake import Intake
from curvote.server.intake_base import where
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
    signs it, such as one of an earlier version, is published again. Rounds that ask
    one sender each are published together: one task, and one file of invitations.
    """
    for mine in _together(configured, steps):
        known = [round_of(project, needed(step).id) for step in mine]
        new = [
            step
            for step, found in zip(mine, known, strict=True)
            if found is None and step.action == "blocked" and _ready(project, step)
        ]
        if new:
            yield _open(project, configured, new, [r for r in known if r])
        elif all(known) and (published := _sign(project, [r for r in known if r])):
            yield published


def _together(configured: Configured, steps: Sequence[Step]) -> Iterable[list[Step]]:
    """Return the steps whose releases come by envelope, as they are published."""
    found: dict[tuple[Any, ...], list[Step]] = {}
    kinds = messages(configured.pipeline.protocol)
    for step in steps:
        if step.release and step.release.by_envelope:
            release = step.release
            apart = "" if kinds[release.message].whole else step.key
            name = release.message, release.number, apart
            found.setdefault(name, []).append(step)
    return found.values()


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


def _open(
    project: Project, configured: Configured, new: list[Step], known: list[Round]
) -> Published:
    """Open rounds beside those that are ``known``, and publish all of them."""
    tasks = [_task(project, step) for step in new]
    _refuse_lost(project, _places(project, configured.name, tasks[0])[0], tasks)
    asked = [*zip(new, tasks, strict=True)]
    _, secret = _places(project, configured.name, tasks[0])
    secret.parent.mkdir(parents=True, exist_ok=True)
    seal = _seal(project, configured, known)
    invited = _invitations(project, configured, asked, known, seal)
    with Intake(project.intake) as intake:
        for step, task in asked:
            intake.open_round(
                needed(step).id,
                pipeline=configured.name,
                task=task,
                needed=minimum(configured, step, records(project, step)),
                invitations=[one for one in invited if one.task == task.digest()],
                seal=seal,
            )
    opened = [found for step in new if (found := round_of(project, needed(step).id))]
    if len(opened) < len(new):
        raise InternalError("a round is gone that was just opened")
    places = _places(project, configured.name, tasks[0])
    # Last: only now it is known what to seal to.
    return _sign(project, [*known, *opened]) or _published(*places, opened)


def _refuse_lost(project: Project, path: Path, asked: list[Asked]) -> None:
    """Refuse to open a round anew whose task is published: its intake is gone.

    Another one would take every used invitation again. A task is published last, so
    its round was there.
    """
    try:
        lost = digests(path.read_bytes()) & {task.digest() for task in asked}
    except (OSError, UserError):
        return  # none is published, or one of an earlier version
    if lost:
        raise UserError(
            f"{path} is published, but the intake ({where(project.intake)}) knows no"
            " such round: it is gone, or another one. Put its latest backup in its"
            f" place. Only if it is lost for good, delete {path.parent} and ask all"
            " clients again."
        )


def digests(published: bytes) -> frozenset[str]:
    """Return the digests of a published task and of what it asks each by name.

    UserError: it is no signed task.
    """
    found: Any = forms.read(signed.opened(published).document["task"])
    parts = [found.only(name) for name in getattr(found, "servers", ())]
    return frozenset(each.digest() for each in (found, *parts))


def _task(project: Project, step: Step) -> Asked:
    """Return the task of a step, judged as clients will."""
    inputs = {n: artifact(project, *at) for n, at in step.sources.items()}
    stage = import_module(step.stage.module)
    return judged(stage.task_of(inputs, step.params).to_json())


def _seal(project: Project, configured: Configured, known: list[Round]) -> str | None:
    """Return the key that new rounds are sealed to: that of open ones beside them."""
    waits = configured.pipeline.intake
    if waits is None or not waits.sealed:
        return None
    with Intake(project.intake) as intake:
        there = (intake.seal(each.id) for each in known if not each.closed)
        return next(filter(None, there), None) or new_key()


def _places(project: Project, pipeline: str, task: Asked) -> tuple[Path, Path]:
    """Return where a round's task and its invitations are published."""
    stem = project.published(pipeline) / f"{task.asks}-{task.number}"
    return Path(f"{stem}.task.json"), Path(f"{stem}.invitations.jsonl")


def _published(task: Path, invitations: Path, rounds: list[Round]) -> Published:
    waits_for = sum(each.needed for each in rounds if not each.complete)
    return Published(task, invitations, waits_for)


def _sign(project: Project, rounds: list[Round]) -> Published | None:
    """Publish the task of rounds with the server's signature; None: it is there.

    Nothing is published for rounds that are all closed.
    """
    still_open = [each for each in rounds if not each.closed]
    if not still_open:
        return None
    task = message_of(rounds[0].task).together([each.task for each in rounds])
    places = _places(project, rounds[0].pipeline, task)
    document = {"task": task.to_json(), "seal_to": still_open[0].seal_to}
    text = server_key(project).sign(document).decode()
    if places[0].is_file() and places[0].read_bytes() == text.encode():
        return None
    places[0].parent.mkdir(parents=True, exist_ok=True)
    write_text(places[0], text)
    return _published(*places, rounds)


def server_key(project: Project) -> ServerKey:
    """Return the key that the project's tasks are signed with, made if needed."""
    return ServerKey.at(project.state / "server.key")


def _invitations(
    project: Project,
    configured: Configured,
    asked: list[tuple[Step, Asked]],
    known: list[Round],
    seal: str | None,
) -> list[Invitation]:
    """Issue invitations, or go on with those that a killed run has written down.

    Sealed ones are issued anew: the key that those name went with the killed run. The
    lines of rounds that are ``known`` stay as they are.
    """
    _, path = _places(project, configured.name, asked[0][1])
    there = _written(path)
    stay = {each.digest for each in known}
    invited = [each for each in there if each.task in stay]
    to = public(seal) if seal else None
    for step, task in asked:
        mine = [each for each in there if each.task == task.digest()]
        named = records(project, step)
        stale = named is not None and [each.record for each in mine] != named
        if seal or stale or not mine or any(each.seal_to for each in mine):
            mine = _issued(project, configured, task, named, to)
        invited += mine
    if invited != there:
        write_lines(path, [invitation.to_json() for invitation in invited])
    return invited


def _issued(
    project: Project,
    configured: Configured,
    task: Asked,
    named: list[str] | None,
    to: str | None,
) -> list[Invitation]:
    """Return new invitations: one for each public record, or for each sender."""
    kind, signer = message_of(task), server_key(project).fingerprint
    if named is not None:
        return issue_each(task, named, signer, to)
    count = kind.invited(configured.values())
    return issue(task, count, signer, to, kind.sender(task))


def _written(path: Path) -> list[Invitation]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Invitation.from_json(json.loads(line)) for line in lines]
