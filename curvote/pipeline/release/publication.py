"""Publication of a round of envelopes: a signed task, and invitations to it.

The task is public. An invitation goes to one client, over a private way: it is what
lets that client answer, once.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from curvote.base.errors import InternalError, UserError
from curvote.chain import lookup
from curvote.intake.admission import Round
from curvote.intake.box import Intake
from curvote.intake.store import store_location
from curvote.messages.answer import validate_task
from curvote.messages.message import message_of, messages_of
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step
from curvote.pipeline.release.production import (
    min_envelopes,
    public_records,
    task_of_step,
)
from curvote.pipeline.release.windows import find_round, release_of, release_windows
from curvote.pipeline.store.artifacts import artifact, write_lines, write_text
from curvote.wire import envelope, signing
from curvote.wire.key_tree import InvitationTree
from curvote.wire.receipt import ReceiptKey
from curvote.wire.signing import ServerKey
from curvote.wire.task import AnyTask

TREE_ENDING: Final = ".tree.json"


@dataclass(frozen=True)
class PublishedRound:
    """A round that was opened: its two files, and the envelopes it waits for."""

    task: Path
    invitations: Path
    waits_for: int


def publish_rounds(
    project: Project, configured: ConfiguredPipeline, steps: tuple[Step, ...]
) -> Iterator[PublishedRound]:
    """Open the rounds whose inputs exist, and yield what was published.

    Only clients elsewhere are invited: a release of clients that are here publishes
    nothing, whatever blocks it. An open round whose task is not there as this server
    signs it, such as one of an earlier version, is published again. Rounds that ask
    one sender each are published together: one task, and one file of invitations.
    """
    groups: dict[tuple[Any, ...], list[Step]] = {}
    kinds = messages_of(configured.pipeline.protocol)
    for step in steps:
        if step.release and step.release.by_envelope:
            release = step.release
            apart = "" if kinds[release.message].per_table else step.key
            name = release.message, release.number, apart
            groups.setdefault(name, []).append(step)
    for group in groups.values():
        rounds = [find_round(project, release_of(step).id) for step in group]
        new = []
        for step, round_ in zip(group, rounds, strict=True):
            inputs = (artifact(project, *source) for source in step.sources.values())
            goes_on = step.action == "blocked" or release_windows(configured)
            wanted = round_ is None and goes_on
            if wanted and all(i.problem(content=True) is None for i in inputs):
                new.append(step)
        if new:
            yield _open_rounds(project, configured, new, [r for r in rounds if r])
        elif all(rounds):
            published = _publish_task(project, [r for r in rounds if r])
            if published:
                yield published


def close_round(project: Project, configured: ConfiguredPipeline) -> Round:
    """Close a pipeline's open round with its present envelopes, and return it.

    UserError: there is none, or it has fewer messages than the server can go on with.
    """
    name, pipeline = configured.name, configured.pipeline
    with Intake(project.intake) as intake:
        still_open = [r for r in intake.rounds(name) if not r.closed]
        if not still_open:
            message = f"{name} has no open round; `curvote run {name}` opens one."
            raise UserError(message)
        last = still_open[-1]
        kind = messages_of(pipeline.protocol)[last.asks]
        least = kind.min_messages(configured.values())
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


def _open_rounds(
    project: Project,
    configured: ConfiguredPipeline,
    new: list[Step],
    rounds: list[Round],
) -> PublishedRound:
    """Open new rounds beside ``known`` ones, and publish all of them."""
    made_tasks = (
        message_of(task).opened(task, configured.values())
        for task in (task_of_step(project, step) for step in new)
    )
    tasks = [validate_task(task.to_json()) for task in made_tasks]  # as clients do
    waits = configured.pipeline.intake
    by_tree = waits is not None and waits.invitations == "tree"
    places = _publication_paths(project, configured.name, tasks[0], by_tree=by_tree)
    _refuse_lost_intake(project, places[0], tasks)
    steps_and_tasks = [*zip(new, tasks, strict=True)]
    places[1].parent.mkdir(parents=True, exist_ok=True)
    seal = None
    if waits and waits.sealed:  # open rounds have one
        with Intake(project.intake) as intake:
            there = (intake.seal(round_.id) for round_ in rounds if not round_.closed)
            seal = next(filter(None, there), None) or envelope.new_private_key()
    prepare = _prepare_tree if by_tree else _prepare_invitations
    invited = prepare(project, configured, steps_and_tasks, rounds, seal)
    with Intake(project.intake) as intake:
        for step, task in steps_and_tasks:
            intake.open_round(
                release_of(step).id,
                pipeline=configured.name,
                task=task,
                needed=min_envelopes(configured, step, public_records(project, step)),
                invitations=invited
                if isinstance(invited, InvitationTree)
                else [i for i in invited if i.task == task.digest()],
                seal=seal,
                keep=_kept_form(configured, task),
                receipts=_receipt_key(project, configured, task),
            )
    ids = [release_of(step).id for step in new]
    opened = [round_ for name in ids if (round_ := find_round(project, name))]
    if len(opened) < len(new):
        raise InternalError("a round is gone that was just opened")
    # Last: only now it is known what to seal to.
    published = _publish_task(project, [*rounds, *opened])
    return published or _describe_publication(*places, opened)


def _receipt_key(
    project: Project, configured: ConfiguredPipeline, task: AnyTask
) -> ReceiptKey | None:
    """Return a new key for the receipts of a task's round; None: it gives none."""
    waits = configured.pipeline.intake
    if waits is None or not waits.gives_receipts or isinstance(task.epsilon, str):
        return None  # or nothing is noised, so there is no epsilon to be held to
    return ReceiptKey.of_round(server_key(project), task.digest())


def _kept_form(configured: ConfiguredPipeline, task: AnyTask) -> str:
    """Return how the intake keeps the messages of a task: sums where they do."""
    waits = configured.pipeline.intake
    if waits is not None and waits.keep == "rows":
        return "rows"
    return str(message_of(task).sum_form(task) or "rows")


def _refuse_lost_intake(project: Project, path: Path, tasks: list[AnyTask]) -> None:
    """Refuse to open a round anew if its task is published (UserError).

    Another one would take every used invitation again. A task is published last, so
    its round was there.
    """
    try:
        lost = task_digests(path.read_bytes()) & {task.digest() for task in tasks}
    except (OSError, UserError):
        return  # none is published, or one of an earlier version
    if lost:
        raise UserError(
            f"{path} is published, but the intake ({store_location(project.intake)})"
            " knows no such round: it is gone, or another one. Put its latest backup in"
            f" its place. Only if it is lost for good, delete {path.parent} and ask all"
            " clients again."
        )


def task_digests(published: bytes) -> frozenset[str]:
    """Return the digests of a published task and of its parts by sender.

    UserError: it is no signed task.
    """
    task: Any = lookup.read_task(signing.open_signed(published).document["task"])
    parts = [task.for_server(name) for name in getattr(task, "servers", ())]
    return frozenset(part.digest() for part in (task, *parts))


def _publication_paths(
    project: Project, pipeline: str, task: AnyTask, *, by_tree: bool | None = None
) -> tuple[Path, Path]:
    """Return the paths of a task and of its invitations: a tree, if it has one."""
    stem = project.published(pipeline) / f"{task.asks}-{task.number}"
    tree, lines = Path(f"{stem}{TREE_ENDING}"), Path(f"{stem}.invitations.jsonl")
    has_tree = tree.exists() if by_tree is None else by_tree
    return Path(f"{stem}.task.json"), tree if has_tree else lines


def _describe_publication(
    task: Path, invitations: Path, rounds: list[Round]
) -> PublishedRound:
    waits_for = sum(round_.needed for round_ in rounds if not round_.complete)
    return PublishedRound(task, invitations, waits_for)


def _publish_task(project: Project, rounds: list[Round]) -> PublishedRound | None:
    """Publish the signed task of rounds; None: it is published already.

    Nothing is published for rounds that are all closed.
    """
    still_open = [round_ for round_ in rounds if not round_.closed]
    if not still_open:
        return None
    task = message_of(rounds[0].task).merge_tasks([round_.task for round_ in rounds])
    places = _publication_paths(project, rounds[0].pipeline, task)
    document = {"task": task.to_json(), "seal_to": still_open[0].seal_to}
    text = server_key(project).sign(document).decode()
    if places[0].is_file() and places[0].read_bytes() == text.encode():
        return None
    places[0].parent.mkdir(parents=True, exist_ok=True)
    write_text(places[0], text)
    return _describe_publication(*places, rounds)


def server_key(project: Project) -> ServerKey:
    """Return the key that signs the project's tasks, made if needed."""
    return ServerKey.at(project.state / "server.key")


def _prepare_invitations(
    project: Project,
    configured: ConfiguredPipeline,
    steps_and_tasks: list[tuple[Step, AnyTask]],
    rounds: list[Round],
    seal: str | None,
) -> list[envelope.Invitation]:
    """Return invitations of rounds: new ones, or those of a killed run.

    Sealed ones are issued anew: the key that those name went with the killed run. The
    lines of rounds that are ``rounds`` stay as they are.
    """
    first_task = steps_and_tasks[0][1]
    _, path = _publication_paths(project, configured.name, first_task, by_tree=False)
    there = read_invitations(path)
    stay = {entry.digest for entry in rounds}
    invited = [entry for entry in there if entry.task in stay]
    to = envelope.public_key(seal) if seal else None
    for step, task in steps_and_tasks:
        for_task = [entry for entry in there if entry.task == task.digest()]
        named = public_records(project, step)
        stale = named is not None and [entry.record for entry in for_task] != named
        if seal or stale or not for_task or any(entry.seal_to for entry in for_task):
            kind, signer = message_of(task), server_key(project).fingerprint
            if named is None:
                count = kind.invited_count(configured.values())
                arguments = task, count, signer, to, kind.sender(task)
                for_task = envelope.issue_invitations(*arguments)
            else:
                for_task = envelope.issue_record_invitations(task, named, signer, to)
        invited += for_task
    if invited != there:
        write_lines(path, [invitation.to_json() for invitation in invited])
    return invited


def _prepare_tree(
    project: Project,
    configured: ConfiguredPipeline,
    steps_and_tasks: list[tuple[Step, AnyTask]],
    rounds: list[Round],
    seal: str | None,
) -> InvitationTree:
    """Return the tree of a round's invitations: a new one, or that of a killed run."""
    ((_, task),) = steps_and_tasks
    _, path = _publication_paths(project, configured.name, task, by_tree=True)
    if path.exists() and not seal:
        tree = InvitationTree.from_json(json.loads(path.read_text(encoding="utf-8")))
        if tree.task == task.digest() and tree.seal_to is None:
            return tree
    count = message_of(task).invited_count(configured.values())
    to = envelope.public_key(seal) if seal else None
    tree = InvitationTree.grow(task, count, server_key(project).fingerprint, to)
    write_lines(path, [tree.to_json()])
    return tree


def read_invitations(path: Path) -> list[envelope.Invitation]:
    """Return the invitations of a published file, of a tree all that it makes."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if path.name.endswith(TREE_ENDING):
        return [*InvitationTree.from_json(json.loads(lines[0]))]
    return [envelope.Invitation.from_json(json.loads(line)) for line in lines]
