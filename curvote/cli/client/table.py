"""Answers about many records: one message for each record of a table.

A registry keeps the secret part of many public records, or learns what is true of those
a model was used on. It answers one task for each that it has an invitation to; each is
a release by itself, and charged by its own id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.base.text import format_names
from curvote.cli.client import answer
from curvote.cli.client.answer import AnsweringOwner, Holdings, ServerQuestion
from curvote.client import consent
from curvote.client import table as forms
from curvote.client.table import Form
from curvote.ledger import book, places, register, session
from curvote.ledger.account import POPULATION, Account, refuse_new_ids
from curvote.messages.answer import (
    answer_about_record,
    answer_outcome,
    describe_answer,
)
from curvote.messages.message import Outcome, message_of
from curvote.wire.envelope import Invitation

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


# The id of a row, the public group that its invitation must name, and what draws its
# message by an invitation.
_Row = tuple[str, int | None, Callable[[Invitation], dict[str, Any]]]


def answer_table(
    owner: AnsweringOwner, questions: ServerQuestion, holdings: Holdings
) -> dict[str, Any]:
    """Release at most once for each record of a table; return a summary."""
    task, classes = questions.task, questions.task.classes
    with register.open_books(owner.ledger, places.register_path()) as opened:
        ledger, _ = opened
        account = owner.settled_account(opened, questions.server)
        consent.refuse_other_classes(owner.classes, classes)
        rows, notes = _read_rows(ledger, task, Path(str(holdings.table)))
        answers, settle = _prepare_answers(owner, opened, questions, rows, notes), None
        every = [name for name, *_ in rows]
        if answers.answers:
            consent.refuse_personal_ledger(account)
            sender = account.sender_name or account.name
            consent.refuse_other_sender(account, sender, NAMED_BY_ID)
            ids = [name for pending in answers.answers for name in pending.clients]
            about = replace(account.about(ledger, ids), records=NAMED_BY_ID)
            if not holdings.new_people:
                refuse_new_ids(ledger, every)
            what = describe_answer(task, None)
            proposal = answer.Proposal(about, what, ids, answers.notes)
            settle = owner.agree(proposal, task, questions.server).write
        else:
            for note in answers.notes:
                typer.echo(f"curvote: {note}", err=True)
        session.release_messages(
            answers.answers,
            task=task,
            books=opened,
            outbox=owner.outbox,
            seal_to=questions.seal_to,
            settle=settle,
        )
        account_after = Account.from_ledger(ledger).about(ledger, every)
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


def _read_rows(
    ledger: book.Ledger, task: Any, path: Path
) -> tuple[list[_Row], Sequence[str]]:
    """Return the rows of a table, of outcomes or labels, and notes for its owner.

    Labels are held against the owner's form; no form has a say in outcomes.
    """

    def draw_outcome(outcome: Outcome, invited: Invitation) -> dict[str, Any]:
        return answer_outcome(task, outcome, invited.about, SystemEntropy())

    def draw_label(place: int, invited: Invitation) -> dict[str, Any]:
        return answer_about_record(task, str(invited.record), place, SystemEntropy())

    if message_of(task).about_model:
        outcomes, notes = message_of(task).read_outcomes(task, path)
        pairs = outcomes.items()
        return [(k, about, partial(draw_outcome, o)) for k, (about, o) in pairs], notes
    classes, record, label = task.classes, forms.RECORD_COLUMN, forms.LABEL_COLUMN
    form = answer.stated_form(ledger, Form(id=record, label=label, classes=classes))
    form.refuse_misfit((), classes)
    labels = forms.read_labels(path, form, classes, [*getattr(task, "words", ())])
    codes = zip(labels.ids, labels.codes.tolist(), strict=True)
    return [(k, None, partial(draw_label, place)) for k, place in codes], labels.notes


def _prepare_answers(
    owner: AnsweringOwner,
    books: session.Books,
    questions: ServerQuestion,
    rows: Sequence[_Row],
    row_notes: Sequence[str],
) -> TableAnswers:
    """Return the answers of rows that are invited and have room, each once.

    An invitation that names no record is for any row of its public group, which takes
    the next one that was never answered. Rows without room send nothing, unless none
    has any: that is a UserError.
    """
    (ledger, answered), task, cost = books, questions.task, questions.task.cost()
    answers, before, full, uninvited = [], 0, list[str](), list[str]()
    account, totals = Account.from_ledger(ledger), ledger.spent(POPULATION)
    spent = dict(zip(totals.clients.tolist(), totals.epsilon.tolist(), strict=True))
    room = account.cap.epsilon * (1 + 1e-12) - cost.epsilon
    invitations: Mapping[Any, Any] = questions.invitations
    anonymous = message_of(task).about_model
    if anonymous:
        unused = [i for i in invitations.values() if not answered.knows(i.id)]
        invitations = {i.about: [] for i in unused}
        for invited in unused:
            invitations[invited.about].append(invited)
    for name, about, draw in rows:
        of_row = invitations.get(about if anonymous else name)
        number = owner.number(ledger, task, name)
        earlier = session.find_release(ledger, task, name, number)
        if earlier and (anonymous or of_row):
            before += 1
        elif of_row and spent.get(name, 0.0) > room:
            full.append(name)
        elif of_row:
            invited = of_row.pop(0) if anonymous else of_row
            message = partial(draw, invited)
            answers.append(session.Answer(message, invited, name, number, [name]))
        else:
            uninvited.append(name)
    if full and not answers and not before:
        consent.refuse_excess_budget(account.about(ledger, full), cost)
    with_row = len(rows) - len(uninvited)
    if not with_row:
        raise UserError(
            "none of the table's records is invited to this task: check both files."
        )
    silenced = (full, "have no room in your cap"), (uninvited, "are not invited")
    notes = [
        *row_notes,
        *(
            f"{len(ids)} records {why}, so they send nothing: {format_names(ids)}"
            for ids, why in silenced
            if ids
        ),
    ]
    if not anonymous and (silent := len(invitations) - with_row):
        notes.append(f"{silent} invitations name records that have no row in the table")
    return TableAnswers(answers, before, notes)
