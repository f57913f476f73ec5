"""The command `curvote client label`: codes of labels of public records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.errors import UserError
from curvote.flows.answering.options import (
    ClassList,
    Invitations,
    LabelTable,
    LedgerFile,
    NewPeople,
    NewRelease,
    OneInvitation,
    Outbox,
    OwnLabelOption,
    TaskFile,
    Yes,
)
from curvote.flows.answering.said import print_answer, print_answers
from curvote.flows.output.terminal import Json, interruptible

if TYPE_CHECKING:
    from curvote.flows.answering.answer import AnsweringOwner


def label(
    *,
    task: TaskFile,
    invitation: OneInvitation = None,
    label: OwnLabelOption = None,
    table: LabelTable = None,
    invitations: Invitations = None,
    ledger: LedgerFile = None,
    outbox: Outbox = None,
    classes: ClassList = None,
    new_release: NewRelease = False,
    new_people: NewPeople = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Release one noised code of a public record's label: yours, or each of a table."""
    from curvote.flows.answering.answer import AnsweringOwner

    owner = AnsweringOwner.from_options(
        ledger, outbox, classes, anew=new_release, yes=yes
    )
    if invitation and label is not None and not (table or invitations):
        print_answer(_answer_own_label(owner, task, invitation, label), as_json)
    elif table and invitations and not (invitation or label is not None):
        summary = _answer_table(owner, task, table, invitations, new_people)
        print_answers(summary, as_json)
    else:
        raise UserError(
            "give --invitation and --label for a record of your own, or --table and"
            " --invitations for those of a registry."
        )


def _answer_own_label(
    owner: AnsweringOwner, task: Path, invitation: Path, label: str
) -> Any:
    from curvote.flows.answering.answer import ServerQuestion
    from curvote.flows.answering.held import OwnLabel

    question = ServerQuestion.from_files(task, invitation, None, per_record=True)
    record = str(question.invitation.record)
    return owner.answer(question, lambda _: OwnLabel(question.task, record, label))


def _answer_table(
    owner: AnsweringOwner, task: Path, table: Path, invitations: Path, new_people: bool
) -> Any:
    from curvote.flows.answering.registry import TableQuestions, answer_table

    with interruptible("client label"):
        questions = TableQuestions.from_files(task, invitations)
        return answer_table(owner, questions, table, new_people=new_people)
