"""What a sender holds: one record of its own, or a table with those of many people.

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

from curvote import validate
from curvote.client import consent
from curvote.client.form import Form
from curvote.client.ledger import Ledger
from curvote.client.record import Given, read_form
from curvote.client.standing import Standing, refuse_strangers
from curvote.client.table import Records, read_records
from curvote.entropy import SystemEntropy
from curvote.envelope import Invitation
from curvote.protocols.answering import answer, of_record
from curvote.protocols.described import described
from curvote.protocols.message import Known, message_of, row
from curvote.task import Asked


class Agreed(Protocol):
    """What somebody agrees to send."""

    @property
    def clients(self) -> Sequence[str]:
        """The ids of those whom one message is about; none: of one record, or self."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What else whoever agrees must hear, a line each."""
        ...

    def line(self, standing: Standing, server: str) -> str:
        """Return the line that is agreed to."""
        ...


class Held(Agreed, Protocol):
    """What a message is about, and how it is drawn."""

    def about(self, ledger: Ledger, standing: Standing) -> Standing:
        """Return where they stand; UserError: the ledger is not theirs."""
        ...

    def ready(self) -> None:
        """Read what was not to be read before somebody agreed."""
        ...

    def drawn(self) -> dict[str, Any]:
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
    _given: Given = field(init=False)

    def about(self, ledger: Ledger, standing: Standing) -> Standing:
        """Return where the client stands."""
        return standing

    def line(self, standing: Standing, server: str) -> str:
        """Return what is sent, and what it costs."""
        what = described(self.task, self.candidate)
        return consent.line(standing, self.task.spends(), server, what)

    def ready(self) -> None:
        """Read the record: the owner alone hears of an error in the file's form."""
        self._given = read_form(self.curve, self.label, self.task)

    def drawn(self) -> dict[str, Any]:
        """Return the client's message; never fails because of what it holds."""
        return answer(self.task, self._given, self.candidate, SystemEntropy())


@dataclass
class OwnLabel:
    """The label of one public record, which its owner keeps."""

    task: Asked
    record: str
    label: str
    clients: Sequence[str] = ()
    notes: Sequence[str] = ()
    _place: int = field(init=False)

    def about(self, ledger: Ledger, standing: Standing) -> Standing:
        """Return where the owner stands; a ledger of many records is a UserError."""
        consent.refuse_registry(standing)
        return standing

    def line(self, standing: Standing, server: str) -> str:
        """Return what is sent, and what it costs."""
        what = described(self.task, self.record)
        return consent.line(standing, self.task.spends(), server, what)

    def ready(self) -> None:
        """Look at the label: the owner alone hears that it is none of the classes."""
        label = validate.one_of(self.task.classes, label=self.label)
        self._place = list(self.task.classes).index(label)

    def drawn(self) -> dict[str, Any]:
        """Return the noised code of the label."""
        return of_record(self.task, self.record, self._place, SystemEntropy())


@dataclass
class Table:
    """The records of a named server: a table whose problems are told at once."""

    task: Any
    invitation: Invitation
    path: Path
    form: Form
    new_people: bool = False
    _records: Records = field(init=False)

    def __post_init__(self) -> None:
        task = self.task
        self.form.refuse(task.features, task.classes)
        wanted = task.features, task.classes
        self._records = read_records(self.path, self.form, *wanted)

    @property
    def clients(self) -> Sequence[str]:
        """The ids of all records."""
        return self._records.ids

    @property
    def notes(self) -> Sequence[str]:
        """What is clipped, and which class no record has."""
        return self._records.notes

    def about(self, ledger: Ledger, standing: Standing) -> Standing:
        """Return where the records stand."""
        called, named = str(self.invitation.server), self.form.naming
        consent.refuse_sender(standing, called, named)
        if not self.new_people:
            refuse_strangers(ledger, self.clients)
        return replace(
            standing.about(ledger, self.clients), called=called, records=named
        )

    def line(self, standing: Standing, server: str) -> str:
        """Return what is sent, and what it costs each."""
        what, n = described(self.task, None), len(self.clients)
        return consent.line_about(standing, self.task.spends(n), server, what, n)

    def ready(self) -> None:
        """Do nothing: the table was read."""

    def drawn(self) -> dict[str, Any]:
        """Return the one message about all records."""
        values, codes = self._records.values, self._records.codes
        known = Known(values, values, codes.astype(np.float64))
        sent = message_of(self.task).draw(self.task, known, SystemEntropy())
        return row(sent, 0)


def told(task: Asked, invitation: Invitation, n: int) -> dict[str, str | float]:
    """Return what the ledger keeps of a named record, or sender: that, and its rho."""
    if invitation.record is not None:
        return {"record": invitation.record}
    if invitation.server is None or not n:
        return {}
    rho = message_of(task).rho(task, n)
    return {"server": invitation.server} | ({} if rho is None else {"rho": rho})
