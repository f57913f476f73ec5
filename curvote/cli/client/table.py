"""Answers about many public records: one message for each record of a table.

A registry keeps the secret part of many public records. It answers one task for each
that it has an invitation to; each is a release by itself, and charged by its own id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.base.text import normalise_id, printable_name
from curvote.cli.client import answer
from curvote.cli.client.answer import AnsweringOwner, errors_in_file
from curvote.client import consent
from curvote.client import table as forms
from curvote.client.table import Form, TableRecords
from curvote.ledger import book, places, register, session
from curvote.ledger.account import Account, refuse_new_ids
from curvote.messages.answer import answer_about_record, describe_answer
from curvote.messages.message import message_of
from curvote.wire import envelope, strict_json
from curvote.wire.envelope import Invitation
from curvote.wire.task import AnyTask

# How its ledger names records: by an id that somebody gave them.
NAMED_BY_ID = "id"
# What a file of invitations ends in: of one, or of one a line.
ONE_SUFFIX, MANY = ".json", ".jsonl"


@dataclass(frozen=True)
class TableQuestions:
    """The signed task of a server, and an invitation for each of many records.

    ``invitations`` are by the records' names, as `curvote.base.text.normalise_id`
    spells them.
    """

    task: AnyTask
    server: str
    seal_to: str | None
    invitations: dict[str, Invitation]

    @classmethod
    def from_files(cls, task: Path, invitations: Path) -> TableQuestions:
        """Return validated questions; ``invitations`` is a folder or a file.

        A ``.json`` file holds one, a ``.jsonl`` file one a line. Those to other tasks
        are left alone. UserError: a file that holds none, none to this task, or two
        for one record.
        """
        signed_document = answer.read_signed_task(task)
        task_read = answer.validated_task_in(task, signed_document)
        if not message_of(task_read).per_record:
            answer.refuse_command(task, task_read)
        by_record: dict[str, Invitation] = {}
        digest = task_read.digest()
        for path, invitation in _read_invitations(invitations):
            if invitation.task == digest:
                with errors_in_file(path):
                    answer.check_invitation_fits(task_read, signed_document, invitation)
                    name = normalise_id(str(invitation.record))
                    if name in by_record and by_record[name] != invitation:
                        words = f"is about record {printable_name(name)}, too."
                        raise UserError(f"another invitation {words}")
                    by_record[name] = invitation
        if not by_record:
            raise UserError(f"{invitations} holds no invitation to the task in {task}.")
        seal_to = signed_document.document["seal_to"]
        return cls(task_read, signed_document.fingerprint, seal_to, by_record)


@dataclass(frozen=True)
class TableAnswers:
    """The answers that a table's owner sends now, and counts of other records.

    ``without_row`` are the invitations without a row, ``uninvited`` the rows without
    one.
    """

    task: AnyTask
    labels: TableRecords
    answers: Sequence[session.Answer]
    released_earlier: int
    without_row: int
    uninvited: int
    clients: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """Notes on classes and records for which nothing is sent."""
        notes_found = [*self.labels.notes]
        if self.uninvited:
            words = "records have no invitation and send nothing"
            notes_found.append(f"{self.uninvited} {words}")
        if self.without_row:
            words = "invitations are about records without a row"
            notes_found.append(f"{self.without_row} {words}")
        return notes_found

    def about(self, ledger: book.Ledger, account: Account) -> Account:
        """Return the account about the records; UserError: an own-record ledger."""
        consent.refuse_personal_ledger(account)
        sender = account.sender_name or account.name
        consent.refuse_other_sender(account, sender, NAMED_BY_ID)
        ids = [name for pending in self.answers for name in pending.clients]
        return replace(account.about(ledger, ids), records=NAMED_BY_ID)

    def line(self, account: Account, server: str) -> str:
        """Return a line on what is sent, and its cost for each record."""
        what, n = describe_answer(self.task, None), len(self.answers)
        return consent.registry_consent_line(account, self.task.cost(), server, what, n)


def answer_table(
    owner: AnsweringOwner,
    questions: TableQuestions,
    table: Path,
    *,
    new_people: bool = False,
) -> dict[str, Any]:
    """Release at most once for each record of a table; return a summary."""
    task, classes = questions.task, questions.task.classes
    with register.open_books(owner.ledger, places.register_path()) as opened:
        ledger, _ = opened
        account = owner.settled_account(opened, questions.server)
        consent.refuse_other_classes(owner.classes, classes)
        proposal = Form(
            id=forms.RECORD_COLUMN, label=forms.LABEL_COLUMN, classes=tuple(classes)
        )
        form = answer.stated_form(ledger, proposal)
        form.refuse_misfit((), classes)
        labels = forms.read_labels(table, form, classes)
        answers, settle = _prepare_answers(owner, ledger, questions, labels), None
        if answers.answers:
            about = answers.about(ledger, account)
            if not new_people:
                refuse_new_ids(ledger, labels.ids)
            settle = owner.agree(answers, about, task, questions.server).write
        session.release_messages(
            answers.answers,
            task=task,
            books=opened,
            outbox=owner.outbox,
            seal_to=questions.seal_to,
            settle=settle,
        )
        account_after = Account.from_ledger(ledger).about(ledger, labels.ids)
    budget, (left_epsilon, left_delta) = task.cost(), account_after.remaining()
    return {
        "message": task.asks,
        "server": questions.server,
        "records": len(answers.answers),
        "before": answers.released_earlier,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "outbox": str(owner.outbox),
        "cap": account_after.cap.epsilon,
        "cap_delta": account_after.cap.delta,
        "left": left_epsilon,
        "left_delta": left_delta,
        "new": bool(answers.answers),
        "notes": answers.notes,
    }


def _prepare_answers(
    owner: AnsweringOwner,
    ledger: book.Ledger,
    questions: TableQuestions,
    labels: TableRecords,
) -> TableAnswers:
    invited = [(name, questions.invitations.get(name)) for name in labels.ids]
    answers, before, entropy = [], 0, SystemEntropy()
    for (name, invitation), place in zip(invited, labels.codes.tolist(), strict=True):
        if invitation is None:
            continue
        last_number = session.latest_number(ledger, questions.task, name)
        number = last_number + 1 if owner.anew else max(last_number, 1)
        if session.find_release(ledger, questions.task, name, number):
            before += 1
            continue
        draw = partial(
            answer_about_record, questions.task, str(invitation.record), place, entropy
        )
        answers.append(session.Answer(draw, invitation, name, number, [name]))
    with_row = len(answers) + before
    if not with_row:
        raise UserError("no record of the table has an invitation to this task.")
    uninvited, silent = len(invited) - with_row, len(questions.invitations) - with_row
    return TableAnswers(questions.task, labels, answers, before, silent, uninvited)


def _read_invitations(place: Path) -> Iterator[tuple[Path, Invitation]]:
    """Yield path and invitation from a folder or a file."""
    paths = [place]
    if place.is_dir():
        paths = sorted(p for p in place.iterdir() if p.suffix in {ONE_SUFFIX, MANY})
    for path in paths:
        if path.suffix != MANY:
            yield path, answer.read_invitation(path)
            continue
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            why = error.strerror or error
            raise UserError(f"{path} cannot be read: {why}.") from None
        for number, line in enumerate(lines, 1):
            with errors_in_file(path), errors_in_file(Path(f"line {number}")):
                written = strict_json.parse_json(line, envelope.LARGEST_ENVELOPE)
                yield path, Invitation.from_json(written)
