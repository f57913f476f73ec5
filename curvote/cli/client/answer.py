"""Answers to a server's task: checks, consent, then one release of a record.

The task is judged alone; the owner agrees; only then is a record read, the release
reserved in the ledger, and its noise drawn.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
import typer

from curvote.base import validate
from curvote.base.classes import Classes
from curvote.base.entropy import SystemEntropy
from curvote.base.errors import InternalError, UserError
from curvote.base.text import normalise_id
from curvote.client import consent, table
from curvote.client.table import Form, OwnerRecord, TableRecords
from curvote.flows.lines import ask_consent
from curvote.ledger import places, register, session
from curvote.ledger.account import Account, refuse_new_ids
from curvote.ledger.book import Ledger
from curvote.messages import answer as answers
from curvote.messages.answer import answer_about_record, answer_task, describe_answer
from curvote.messages.message import ClientData, message_of, payload_at
from curvote.wire import envelope, signing, strict_json
from curvote.wire.task import AnyTask


class ConsentProposal(Protocol):
    """A message to which the owner's consent is asked."""

    @property
    def clients(self) -> Sequence[str]:
        """The ids of the records of one message; none for the owner's own record."""

    @property
    def notes(self) -> Sequence[str]:
        """Further notes for whoever gives consent, a line each."""

    def line(self, account: Account, server: str) -> str:
        """Return the line that states content and cost of the message."""


class RecordSource(ConsentProposal, Protocol):
    """The records of a message, and the drawing of it."""

    def about(self, ledger: Ledger, account: Account) -> Account:
        """Return the account about these records; UserError: another's ledger."""

    def ready(self) -> None:
        """Read the records that may be read only after consent."""

    def draw_message(self) -> dict[str, Any]:
        """Return the message, with noise of the operating system."""


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
        self._record = table.read_record(self.curve, self.label, self.task)

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
    invitation: envelope.Invitation
    path: Path
    form: Form
    new_people: bool = False
    _records: TableRecords = field(init=False)

    def __post_init__(self) -> None:
        wanted = self.task.features, self.task.classes
        self.form.refuse_misfit(*wanted)
        self._records = table.read_records(self.path, self.form, *wanted)

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
        about = account.about(ledger, self.clients)
        return replace(about, sender_name=called, records=named)

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
    task: AnyTask, invitation: envelope.Invitation, n: int
) -> dict[str, str | float]:
    """Return the ledger's facts of a release by a named record or sender."""
    if invitation.record is not None:
        return {"record": invitation.record}
    if invitation.server is None or not n:
        return {}
    rho = message_of(task).rho(task, n)
    return {"server": invitation.server} | ({} if rho is None else {"rho": rho})


@dataclass(frozen=True)
class ServerQuestion:
    """The signed task of a server, and an invitation to it."""

    task: AnyTask
    server: str
    seal_to: str | None
    invitation: envelope.Invitation

    @classmethod
    def from_files(
        cls,
        task: Path,
        invitation: Path,
        asks: str | None,
        *,
        per_table: bool = False,
        per_record: bool = False,
    ) -> ServerQuestion:
        """Return a question from its files; ``asks`` is the expected message.

        ``per_table``: it is about a table of records; ``per_record``: about one public
        record.
        """
        signed_document = read_signed_task(task)
        invited = read_invitation(invitation)
        task_read = validated_task_in(task, signed_document, invited.server)
        kind = message_of(task_read)
        about = kind.per_table, kind.per_record
        if asks not in {None, task_read.asks} or about != (per_table, per_record):
            refuse_command(task, task_read)
        check_invitation_fits(task_read, signed_document, invited)
        seal_to = signed_document.document["seal_to"]
        return cls(task_read, signed_document.fingerprint, seal_to, invited)


@dataclass(frozen=True)
class AnsweringOwner:
    """The owner's ledger, outbox and consent, with which it answers.

    ``classes`` are the only ones that the owner agrees to, None: those of the task.
    ``anew`` asks for another release where one was made; ``yes`` agrees beforehand.
    """

    ledger: Path
    outbox: Path
    classes: Classes | None
    anew: bool
    yes: bool

    @classmethod
    def from_options(
        cls,
        ledger: Path | None,
        outbox: Path | None,
        classes: str | None,
        *,
        anew: bool,
        yes: bool,
    ) -> AnsweringOwner:
        """Return an owner by the command's options."""
        agreed = Classes(classes.split(",")) if classes else None
        where = places.ledger_path(ledger), places.outbox_path(outbox)
        return cls(*where, agreed, anew=anew, yes=yes)

    def answer(
        self, question: ServerQuestion, hold: Callable[[Ledger], RecordSource]
    ) -> dict[str, Any]:
        """Release at most once, and return a summary.

        ``hold`` returns what the message is about; it is called where one is drawn.
        """
        with register.open_books(self.ledger, places.register_path()) as opened:
            ledger, _ = opened
            owner_account = self.settled_account(opened, question.server)
            task, invited = question.task, question.invitation
            name = owner_account.name
            sender = normalise_id(invited.record or "") or invited.server or name
            latest_number = session.latest_number(ledger, task, sender)
            number = latest_number + 1 if self.anew else max(latest_number, 1)
            draw, agreed = _MessageDraw(), owner_account
            if not session.find_release(ledger, task, sender, number):
                consent.refuse_other_classes(self.classes, task.classes)
                draw.record_held = record_held = hold(ledger)
                about = record_held.about(ledger, owner_account)
                agreed = self.agree(record_held, about, task, question.server)
                record_held.ready()
            clients = draw.record_held.clients if draw.record_held else ()
            path = session.release_message(
                draw,
                task=task,
                invitation=invited,
                seal_to=question.seal_to,
                sender=sender,
                number=number,
                books=opened,
                outbox=self.outbox,
                clients=clients or [name],
                facts=ledger_facts(task, invited, len(clients)),
                settle=agreed.write,
            )
            entry = session.find_release(ledger, task, sender, number)
            if entry is None:
                raise InternalError("a release is not in the ledger")
            members = ledger.members(entry.release)
            account = Account.from_ledger(ledger).about(ledger, members)
            left_epsilon, left_delta = account.remaining()
            whom: dict[str, Any] = {"server": question.server}
            if invited.server:
                whom = {"server": invited.server, "signer": question.server}
                whom["records"] = entry.n_clients
            done = {
                "message": task.asks,
                **whom,
                **({} if invited.record is None else {"record": invited.record}),
                "epsilon": entry.budget.epsilon,
                "delta": entry.budget.delta,
                "envelope": str(path),
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                "cap": account.cap.epsilon,
                "cap_delta": account.cap.delta,
                "left": left_epsilon,
                "left_delta": left_delta,
                "new": draw.done,
            }
            if draw.record_held and invited.server:
                done["notes"] = [*draw.record_held.notes]
            return done

    def settled_account(self, opened: session.Books, server: str) -> Account:
        """Recover interrupted releases; return the account's state since then."""
        ledger, _ = opened
        session.recover_releases(opened, self.outbox)
        account = Account.from_ledger(ledger)
        consent.refuse_other_server(account, server)
        return account

    def agree(
        self, proposal: ConsentProposal, account: Account, task: AnyTask, server: str
    ) -> Account:
        """Ask for consent to a message; return the account to be recorded.

        Returned is what the ledger is to hold from the reservation on, and no earlier:
        a task that is refused pins nobody.
        """
        records = len(proposal.clients) or 1
        consent.refuse_excess_budget(account, task.cost(records), records)
        for notice in [*proposal.notes, *consent.consent_notices(account, server)]:
            typer.echo(f"curvote: {notice}", err=True)
        typer.echo(proposal.line(account, server), err=True)
        if account.server is None and not (self.yes or sys.stdin.isatty()):
            raise UserError(
                f"server {server} is new, and nobody is here to compare its"
                " fingerprint: `curvote client init --server FINGERPRINT` pins the one"
                " that you got another way, or say --yes. Nothing was drawn."
            )
        ask_consent("Send it?", self.yes)
        return replace(account, server=server)


@dataclass
class _MessageDraw:
    """The sender's message, drawn when called."""

    record_held: RecordSource | None = None
    done: bool = False

    def __call__(self) -> dict[str, Any]:
        if self.record_held is None:
            raise UserError(
                "the release that was known a moment ago was taken back: run again."
            )
        self.done = True
        return self.record_held.draw_message()


def stated_form(ledger: Ledger, proposal: Form) -> Form:
    """Return the owner's table form; without one, propose one on a terminal.

    ``proposal`` is what the task takes the table for.
    """
    current = table.current_form(ledger)
    if current is not None:
        return current
    if not sys.stdin.isatty():
        raise UserError(
            "your ledger holds no form of your table, so there is nothing that the task"
            " could be held against: `curvote client form --table FILE` writes a draft,"
            " `curvote client form form.yaml` settles what you made of it. Nothing was"
            " read, nothing drawn."
        )
    typer.echo("the server takes your table for this:", err=True)
    for line in table.describe_form(proposal):
        typer.echo(f"  {line}", err=True)
    ask_consent("Is that right, for every task to come?", yes=False)
    table.store_form(ledger, proposal)
    return proposal


def table_form(ledger: Ledger, task: Any, label: str | None, id_: str | None) -> Form:
    """Return the form of a table of records; ``label`` and ``id_`` may repeat it.

    UserError: they name other columns, and so would charge the same people twice.
    """
    columns = {
        name: table.Column(bounds=(lower, upper))
        for name, lower, upper in task.features
        if name not in {label, id_}
    }
    classes = tuple(task.classes)
    proposal = Form(id=id_, label=label or "label", classes=classes, columns=columns)
    form_found = stated_form(ledger, proposal)
    stated_columns = (("label", label, form_found.label), ("id", id_, form_found.id))
    for option, column, stated_column in stated_columns:
        if column not in {None, stated_column}:
            raise UserError(
                f"--{option} is {column!r}, but by the form in your ledger it is"
                f" {stated_column or 'the row'}. Nothing was read, nothing drawn."
            )
    return form_found


def read_signed_task(path: Path) -> signing.SignedTask:
    """Return the signed document in a file, without validating its task."""
    with errors_in_file(path):
        return signing.open_signed(_read_bytes(path, signing.LARGEST))


def validated_task_in(
    path: Path, signed_document: signing.SignedTask, server: str | None = None
) -> AnyTask:
    """Return the validated task of a signed document that stands in a file."""
    with errors_in_file(path):
        return answers.validate_task(signed_document.document["task"], server)


def refuse_command(path: Path, task: AnyTask) -> NoReturn:
    """Refuse a task of another kind, and name the command that answers it."""
    command = "label" if message_of(task).per_record else task.asks
    raise UserError(f"{path} asks for a {task.asks}: use `curvote client {command}`.")


def check_invitation_fits(
    task: AnyTask, signed_document: signing.SignedTask, invited: envelope.Invitation
) -> None:
    """Refuse an invitation to another task, server or key."""
    answers.check_invitation(task, invited)
    server = signed_document.fingerprint
    if invited.signer not in {None, server}:
        raise UserError(
            f"server {server} signed the task, but the invitation is of server"
            f" {invited.signer}: one of them was replaced. Nothing was drawn."
        )
    invited.refuse_other_key(signed_document.document["seal_to"])


def read_invitation(path: Path) -> envelope.Invitation:
    """Return the invitation in a file."""
    with errors_in_file(path):
        text = _read_bytes(path, envelope.LARGEST_ENVELOPE)
        if b"\n{" in text.strip():
            raise UserError(
                "several invitations; each is for one. Give a file of your line alone."
            )
        written = strict_json.parse_json(text, envelope.LARGEST_ENVELOPE)
        return envelope.Invitation.from_json(written)


@contextmanager
def errors_in_file(path: Path) -> Iterator[None]:
    """Prefix the messages of errors with the file's name."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _read_bytes(path: Path, largest: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(largest + 1)
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror or error}.") from None
