"""Answers about many public records: one message for each record of a table.

A registry keeps the secret part of many public records. It answers one task for each
that it has an invitation to; each is a release by itself, and charged by its own id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.cli.client import answer
from curvote.cli.client.answer import AnsweringOwner, Holdings, ServerQuestion
from curvote.client import consent
from curvote.client import table as forms
from curvote.client.table import Form, TableRecords
from curvote.ledger import book, places, register, session
from curvote.ledger.account import Account, refuse_new_ids
from curvote.messages.answer import answer_about_record, describe_answer

# How its ledger names records: by an id that somebody gave them.
NAMED_BY_ID = "id"


@dataclass(frozen=True)
class TableAnswers:
    """The answers that a table's owner sends now, and the number of earlier ones.

    ``notes`` are about classes and records for which nothing is sent.
    """

    answers: Sequence[session.Answer]
    released_earlier: int
    notes: list[str]


def answer_table(
    owner: AnsweringOwner, questions: ServerQuestion, holdings: Holdings
) -> dict[str, Any]:
    """Release at most once for each record of a table; return a summary."""
    task, classes = questions.task, questions.task.classes
    with register.open_books(owner.ledger, places.register_path()) as opened:
        ledger, _ = opened
        account = owner.settled_account(opened, questions.server)
        consent.refuse_other_classes(owner.classes, classes)
        record, label = forms.RECORD_COLUMN, forms.LABEL_COLUMN
        taken_for = Form(id=record, label=label, classes=tuple(classes))
        form = answer.stated_form(ledger, taken_for)
        form.refuse_misfit((), classes)
        words = [*getattr(task, "words", ())]
        labels = forms.read_labels(Path(str(holdings.table)), form, classes, words)
        answers, settle = _prepare_answers(owner, ledger, questions, labels), None
        if answers.answers:
            consent.refuse_personal_ledger(account)
            sender = account.sender_name or account.name
            consent.refuse_other_sender(account, sender, NAMED_BY_ID)
            ids = [name for pending in answers.answers for name in pending.clients]
            about = replace(account.about(ledger, ids), records=NAMED_BY_ID)
            if not holdings.new_people:
                refuse_new_ids(ledger, labels.ids)
            what = describe_answer(task, None)
            proposal = answer.Proposal(about, what, ids, answers.notes)
            settle = owner.agree(proposal, task, questions.server).write
        session.release_messages(
            answers.answers,
            task=task,
            books=opened,
            outbox=owner.outbox,
            seal_to=questions.seal_to,
            settle=settle,
        )
        account_after = Account.from_ledger(ledger).about(ledger, labels.ids)
    budget = task.cost()
    return {
        "message": task.asks,
        "server": questions.server,
        "records": len(answers.answers),
        "before": answers.released_earlier,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "outbox": str(owner.outbox),
        **answer.room_left(account_after),
        "new": bool(answers.answers),
        "notes": answers.notes,
    }


def _prepare_answers(
    owner: AnsweringOwner,
    ledger: book.Ledger,
    questions: ServerQuestion,
    labels: TableRecords,
) -> TableAnswers:
    invited = [(name, questions.invitations.get(name)) for name in labels.ids]
    answers, before, entropy = [], 0, SystemEntropy()
    for (name, invitation), place in zip(invited, labels.codes.tolist(), strict=True):
        if invitation is None:
            continue
        number = owner.number(ledger, questions.task, name)
        if session.find_release(ledger, questions.task, name, number):
            before += 1
            continue
        draw = partial(
            answer_about_record, questions.task, str(invitation.record), place, entropy
        )
        answers.append(session.Answer(draw, invitation, name, number, [name]))
    with_row = len(answers) + before
    if not with_row:
        raise UserError(
            "none of the table's records is invited to this task: check both files."
        )
    notes = [*labels.notes]
    if uninvited := len(invited) - with_row:
        notes.append(f"{uninvited} records are not invited, so they send nothing")
    if silent := len(questions.invitations) - with_row:
        notes.append(f"{silent} invitations name records that have no row in the table")
    return TableAnswers(answers, before, notes)
