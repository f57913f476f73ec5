"""What `curvote client label --table` does: one message for each record of a table.

A registry keeps the secret part of many public records. It answers one task for each
that it has an invitation to; each is a release by itself, and charged by its own id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from curvote import envelope, strict_json
from curvote.client import consent, places
from curvote.client.form import Form
from curvote.client.label_table import LABEL, RECORD, Labels, read_labels
from curvote.client.ledger import Ledger
from curvote.client.outbox import Answer, latest, release_each, released_before
from curvote.client.register import books
from curvote.client.standing import Standing, refuse_strangers
from curvote.client.words import printable
from curvote.entropy import SystemEntropy
from curvote.envelope import Invitation
from curvote.errors import UserError
from curvote.flows.answering.answer import (
    Owner,
    check_fit,
    in_file,
    invitation_in,
    judged_in,
    refuse_command,
    signed_task,
    stated,
)
from curvote.identifier import normal
from curvote.protocols.answering import of_record
from curvote.protocols.described import described
from curvote.protocols.message import message_of
from curvote.task import Asked

# How its ledger names records: by an id that somebody gave them.
BY_ID = "id"
# What a file of invitations ends in: of one, or of one a line.
ONE, MANY = ".json", ".jsonl"


@dataclass(frozen=True)
class Questions:
    """What a server asks about many records: a task, and an invitation for each.

    ``invitations`` are by the records' names, as `curvote.identifier.normal` spells
    them.
    """

    task: Asked
    server: str
    seal_to: str | None
    invitations: dict[str, Invitation]

    @classmethod
    def read(cls, task: Path, invitations: Path) -> Questions:
        """Judge all of it alone; ``invitations`` is a folder of them, or one file.

        A ``.json`` file holds one, a ``.jsonl`` file one a line. Those to other tasks
        are left alone. UserError: a file that holds none, none to this task, or two
        for one record.
        """
        given = signed_task(task)
        asked = judged_in(task, given)
        if not message_of(asked).tied:
            refuse_command(task, asked)
        found: dict[str, Invitation] = {}
        digest = asked.digest()
        for path, each in _written(invitations):
            if each.task == digest:
                with in_file(path):
                    check_fit(asked, given, each)
                    _enter(found, each)
        if not found:
            raise UserError(f"{invitations} holds no invitation to the task in {task}.")
        return cls(asked, given.fingerprint, given.document["seal_to"], found)


@dataclass(frozen=True)
class Kept:
    """What a registry sends now: ``answers``, beside ``before`` that were made.

    ``silent`` are the invitations without a row, ``unasked`` the rows without one.
    """

    task: Asked
    labels: Labels
    answers: Sequence[Answer]
    before: int
    silent: int
    unasked: int
    clients: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """Which class no record has, and of which records nothing is sent."""
        found = [*self.labels.notes]
        if self.unasked:
            found.append(f"{self.unasked} records have no invitation and send nothing")
        if self.silent:
            found.append(f"{self.silent} invitations are about records without a row")
        return found

    def about(self, ledger: Ledger, standing: Standing) -> Standing:
        """Return where the records stand; UserError: it is no ledger of many."""
        consent.refuse_own(standing)
        consent.refuse_sender(standing, standing.called or standing.name, BY_ID)
        ids = [name for each in self.answers for name in each.clients]
        return replace(standing.about(ledger, ids), records=BY_ID)

    def line(self, standing: Standing, server: str) -> str:
        """Return what is sent, and what it costs each."""
        what, n = described(self.task, None), len(self.answers)
        return consent.line_each(standing, self.task.spends(), server, what, n)


def answer_each(
    owner: Owner, asked: Questions, table: Path, *, new_people: bool = False
) -> dict[str, Any]:
    """Release at most once for each record of a table, and return what happened."""
    with books(owner.ledger, places.register()) as opened:
        ledger, _ = opened
        standing = owner.standing(opened, asked.server)
        consent.refuse_classes(owner.classes, asked.task.classes)
        classes = asked.task.classes
        proposal = Form(id=RECORD, label=LABEL, classes=tuple(classes))
        form = stated(ledger, proposal)
        form.refuse((), classes)
        labels = read_labels(table, form, classes)
        kept, settle = _kept(owner, ledger, asked, labels), None
        if kept.answers:
            about = kept.about(ledger, standing)
            if not new_people:
                refuse_strangers(ledger, labels.records)
            settle = owner.agree(kept, about, asked.task, asked.server).write
        release_each(
            kept.answers,
            task=asked.task,
            books=opened,
            outbox=owner.outbox,
            seal_to=asked.seal_to,
            settle=settle,
        )
        left = Standing.of(ledger).about(ledger, labels.records)
    return _summary(owner, asked, kept, left)


def _kept(owner: Owner, ledger: Ledger, asked: Questions, labels: Labels) -> Kept:
    invited = [(name, asked.invitations.get(name)) for name in labels.records]
    answers, before, entropy = [], 0, SystemEntropy()
    for (name, each), place in zip(invited, labels.places.tolist(), strict=True):
        if each is None:
            continue
        known = latest(ledger, asked.task, name)
        number = known + 1 if owner.anew else max(known, 1)
        if released_before(ledger, asked.task, name, number):
            before += 1
            continue
        draw = partial(of_record, asked.task, str(each.record), place, entropy)
        answers.append(Answer(draw, each, name, number, [name]))
    with_row = len(answers) + before
    if not with_row:
        raise UserError("no record of the table has an invitation to this task.")
    unasked, silent = len(invited) - with_row, len(asked.invitations) - with_row
    return Kept(asked.task, labels, answers, before, silent, unasked)


def _summary(
    owner: Owner, asked: Questions, kept: Kept, standing: Standing
) -> dict[str, Any]:
    budget, (left_epsilon, left_delta) = asked.task.spends(), standing.left()
    return {
        "message": asked.task.asks,
        "server": asked.server,
        "records": len(kept.answers),
        "before": kept.before,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "outbox": str(owner.outbox),
        "cap": standing.cap.epsilon,
        "cap_delta": standing.cap.delta,
        "left": left_epsilon,
        "left_delta": left_delta,
        "new": bool(kept.answers),
        "notes": kept.notes,
    }


def _written(place: Path) -> Iterator[tuple[Path, Invitation]]:
    """Yield the invitations of a folder, or of one file, and where each stands."""
    paths = [place]
    if place.is_dir():
        paths = sorted(p for p in place.iterdir() if p.suffix in {ONE, MANY})
    for path in paths:
        if path.suffix != MANY:
            yield path, invitation_in(path)
            continue
        for number, line in enumerate(_lines(path), 1):
            with in_file(path), in_file(Path(f"line {number}")):
                written = strict_json.parse(line, envelope.LARGEST)
                yield path, Invitation.from_json(written)


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None


def _enter(found: dict[str, Invitation], each: Invitation) -> None:
    name = normal(str(each.record))
    if name in found and found[name] != each:
        raise UserError(f"another invitation is about record {printable(name)}, too.")
    found[name] = each
