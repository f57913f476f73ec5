"""Records of a sender: its own record or label, or a table with many records.

A client is the case of one record, or of the label of a public one. It agrees before
its record is read, as a refusal that depends on it would be an answer; whoever holds a
table is told what is wrong with it, and only then how many records are charged what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from curvote.base import validate
from curvote.base.entropy import SystemEntropy
from curvote.client import consent
from curvote.client.record import OwnerRecord, read_record
from curvote.client.table import Form, TableRecords, read_records
from curvote.ledger.account import Account, refuse_new_ids
from curvote.ledger.book import Ledger
from curvote.messages.answer import answer_about_record, answer_task, describe_answer
from curvote.messages.message import ClientData, message_of, payload_at
from curvote.wire.envelope import Invitation
from curvote.wire.task import AnyTask


class ConsentProposal(Protocol):
    """A message to which the owner's consent is asked."""

    @property
    def clients(self) -> Sequence[str]:
        """The ids of the records of one message; none for the owner's own record."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Further notes for whoever gives consent, a line each."""
        ...

    def line(self, account: Account, server: str) -> str:
        """Return the line that states content and cost of the message."""
        ...


class RecordSource(ConsentProposal, Protocol):
    """The records of a message, and the drawing of it."""

    def about(self, ledger: Ledger, account: Account) -> Account:
        """Return the account about these records; UserError: another's ledger."""
        ...

    def ready(self) -> None:
        """Read the records that may be read only after consent."""
        ...

    def draw_message(self) -> dict[str, Any]:
        """Return the message, with noise of the operating system."""
        ...


@dataclass
class OwnRecord:
    """The record of a client: a file with a curve, and a label."""

    task: Any
    candidate: int | None
    curve: Path
    label: str
    clients: Sequence[str] = ()
    notes: Sequence[str] = ()
    _record: OwnerRecord = field(init=False)

    def about(self, ledger: Ledger, account: Account) -> Account:
        """Return the client's account."""
        return account

    def line(self, account: Account, server: str) -> str:
        """Return a line on what is sent, and its cost."""
        what = describe_answer(self.task, self.candidate)
        return consent.consent_line(account, self.task.cost(), server, what)

    def ready(self) -> None:
        """Read the record; errors of its form are shown to the owner alone."""
        self._record = read_record(self.curve, self.label, self.task)

    def draw_message(self) -> dict[str, Any]:
        """Return the client's message, whatever the record holds."""
        return answer_task(self.task, self._record, self.candidate, SystemEntropy())


@dataclass
class OwnLabel:
    """The label of one public record, which its owner keeps."""

    task: AnyTask
    record: str
    label: str
    clients: Sequence[str] = ()
    notes: Sequence[str] = ()
    _place: int = field(init=False)

    def about(self, ledger: Ledger, account: Account) -> Account:
        """Return the owner's account; a ledger of many records: UserError."""
        consent.refuse_registry_ledger(account)
        return account

    def line(self, account: Account, server: str) -> str:
        """Return a line on what is sent, and its cost."""
        what = describe_answer(self.task, self.record)
        return consent.consent_line(account, self.task.cost(), server, what)

    def ready(self) -> None:
        """Check the label; an unknown class is shown to the owner alone."""
        label = validate.one_of(self.task.classes, label=self.label)
        self._place = list(self.task.classes).index(label)

    def draw_message(self) -> dict[str, Any]:
        """Return the noised code of the label."""
        return answer_about_record(self.task, self.record, self._place, SystemEntropy())


@dataclass
class RecordTable:
    """The records of a named server, from a table that is checked at once."""

    task: Any
    invitation: Invitation
    path: Path
    form: Form
    new_people: bool = False
    _records: TableRecords = field(init=False)

    def __post_init__(self) -> None:
        task = self.task
        self.form.refuse_misfit(task.features, task.classes)
        wanted = task.features, task.classes
        self._records = read_records(self.path, self.form, *wanted)

    @property
    def clients(self) -> Sequence[str]:
        """The ids of all records."""
        return self._records.ids

    @property
    def notes(self) -> Sequence[str]:
        """Notes on clipped values and on classes without a record."""
        return self._records.notes

    def about(self, ledger: Ledger, account: Account) -> Account:
        """Return the account about the table's records."""
        called, named = str(self.invitation.server), self.form.record_naming
        consent.refuse_other_sender(account, called, named)
        if not self.new_people:
            refuse_new_ids(ledger, self.clients)
        return replace(
            account.about(ledger, self.clients), sender_name=called, records=named
        )

    def line(self, account: Account, server: str) -> str:
        """Return a line on what is sent, and its cost for each record."""
        what, n = describe_answer(self.task, None), len(self.clients)
        return consent.table_consent_line(account, self.task.cost(n), server, what, n)

    def ready(self) -> None:
        """Do nothing: the table was read."""

    def draw_message(self) -> dict[str, Any]:
        """Return the one message about all records."""
        values, codes = self._records.values, self._records.codes
        data = ClientData(values, values, codes.astype(np.float64))
        message = message_of(self.task).draw(self.task, data, SystemEntropy())
        return payload_at(message, 0)


def ledger_facts(
    task: AnyTask, invitation: Invitation, n: int
) -> dict[str, str | float]:
    """Return the ledger's facts of a release by a named record or sender."""
    if invitation.record is not None:
        return {"record": invitation.record}
    if invitation.server is None or not n:
        return {}
    rho = message_of(task).rho(task, n)
    return {"server": invitation.server} | ({} if rho is None else {"rho": rho})
