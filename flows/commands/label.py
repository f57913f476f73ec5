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
    OwnLabel,
    TaskFile,
    Yes,
)
from curvote.flows.answering.said import say, say_each
from curvote.flows.output.terminal import Json, interruptible

if TYPE_CHECKING:
    from curvote.flows.answering.answer import Owner


def label(
    *,
    task: TaskFile,
    invitation: OneInvitation = None,
    label: OwnLabel = None,
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
    from curvote.flows.answering.answer import Owner

    owner = Owner.of(ledger, outbox, classes, anew=new_release, yes=yes)
    if invitation and label is not None and not (table or invitations):
        say(_own_label(owner, task, invitation, label), as_json)
    elif table and invitations and not (invitation or label is not None):
        found = _table_of_labels(owner, task, table, invitations, new_people)
        say_each(found, as_json)
    else:
        raise UserError(
            "give --invitation and --label for a record of your own, or --table and"
            " --invitations for those of a registry."
        )


def _own_label(owner: Owner, task: Path, invitation: Path, label: str) -> Any:
    from curvote.flows.answering.answer import Question
    from curvote.flows.answering.held import OwnLabel

    asked = Question.read(task, invitation, None, tied=True)
    record = str(asked.invitation.record)
    return owner.answer(asked, lambda _: OwnLabel(asked.task, record, label))


def _table_of_labels(
    owner: Owner, task: Path, table: Path, invitations: Path, new_people: bool
) -> Any:
    from curvote.flows.answering.registry import Questions, answer_each

    with interruptible("client label"):
        asked = Questions.read(task, invitations)
        return answer_each(owner, asked, table, new_people=new_people)
