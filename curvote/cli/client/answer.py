"""Answers to a server's task: checks, consent, then one release of a record.

The task is judged alone; the owner agrees; only then is a record read, the release
reserved in the ledger, and its noise drawn.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import typer

from curvote.base.classes import Classes
from curvote.base.errors import InternalError, UserError
from curvote.base.text import normalise_id
from curvote.cli.client.records import ConsentProposal, RecordSource, ledger_facts
from curvote.client import consent, table
from curvote.client.table import Form
from curvote.flows.lines import ask_consent
from curvote.ledger import places, session
from curvote.ledger.account import Account
from curvote.ledger.book import Ledger
from curvote.ledger.register import open_books
from curvote.ledger.session import Books
from curvote.messages.answer import check_invitation, validate_task
from curvote.messages.message import message_of
from curvote.wire import envelope, signing, strict_json
from curvote.wire.envelope import Invitation
from curvote.wire.signing import SignedTask
from curvote.wire.task import AnyTask


@dataclass(frozen=True)
class ServerQuestion:
    """The signed task of a server, and an invitation to it."""

    task: AnyTask
    server: str
    seal_to: str | None
    invitation: Invitation

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
        if asks not in {None, task_read.asks} or (kind.per_table, kind.per_record) != (
            per_table,
            per_record,
        ):
            refuse_command(task, task_read)
        check_invitation_fits(task_read, signed_document, invited)
        return cls(
            task_read,
            signed_document.fingerprint,
            signed_document.document["seal_to"],
            invited,
        )


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
        with open_books(self.ledger, places.register_path()) as opened:
            ledger, _ = opened
            owner_account = self.settled_account(opened, question.server)
            sender, number = self._sender_and_number(ledger, question, owner_account)
            draw, agreed = _MessageDraw(), owner_account
            if not session.find_release(ledger, question.task, sender, number):
                consent.refuse_other_classes(self.classes, question.task.classes)
                draw.record_held = record_held = hold(ledger)
                about = record_held.about(ledger, owner_account)
                agreed = self.agree(record_held, about, question.task, question.server)
                record_held.ready()
            clients = draw.record_held.clients if draw.record_held else ()
            path = session.release_message(
                draw,
                task=question.task,
                invitation=question.invitation,
                seal_to=question.seal_to,
                sender=sender,
                number=number,
                books=opened,
                outbox=self.outbox,
                clients=clients or [owner_account.name],
                facts=ledger_facts(question.task, question.invitation, len(clients)),
                settle=agreed.write,
            )
            entry = session.find_release(ledger, question.task, sender, number)
            if entry is None:
                raise InternalError("a release is not in the ledger")
            account = Account.from_ledger(ledger).about(
                ledger, ledger.members(entry.release)
            )
            left_epsilon, left_delta = account.remaining()
            name, record = question.invitation.server, question.invitation.record
            named = {
                "server": name,
                "signer": question.server,
                "records": entry.n_clients,
            }
            done = (
                {
                    "message": question.task.asks,
                    **(named if name else {"server": question.server}),
                    **({} if record is None else {"record": record}),
                    "epsilon": entry.budget.epsilon,
                    "delta": entry.budget.delta,
                    "envelope": str(path),
                    "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                    "cap": account.cap.epsilon,
                    "cap_delta": account.cap.delta,
                    "left": left_epsilon,
                    "left_delta": left_delta,
                }
            ) | {"new": draw.done}
            if draw.record_held and question.invitation.server:
                done["notes"] = [*draw.record_held.notes]
            return done

    def _sender_and_number(
        self, ledger: Ledger, question: ServerQuestion, account: Account
    ) -> tuple[str, int]:
        """Return the sender's name and the number of a release."""
        invited = question.invitation
        sender = normalise_id(invited.record or "") or invited.server or account.name
        latest_number = session.latest_number(ledger, question.task, sender)
        return sender, latest_number + 1 if self.anew else max(latest_number, 1)

    def settled_account(self, opened: Books, server: str) -> Account:
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
    for option, column, stated_column in (
        ("label", label, form_found.label),
        ("id", id_, form_found.id),
    ):
        if column not in {None, stated_column}:
            raise UserError(
                f"--{option} is {column!r}, but by the form in your ledger it is"
                f" {stated_column or 'the row'}. Nothing was read, nothing drawn."
            )
    return form_found


def read_signed_task(path: Path) -> SignedTask:
    """Return the signed document in a file, without validating its task."""
    with errors_in_file(path):
        return signing.open_signed(_read_bytes(path, signing.LARGEST))


def validated_task_in(
    path: Path, signed_document: SignedTask, server: str | None = None
) -> AnyTask:
    """Return the validated task of a signed document that stands in a file."""
    with errors_in_file(path):
        return validate_task(signed_document.document["task"], server)


def refuse_command(path: Path, task: AnyTask) -> NoReturn:
    """Refuse a task of another kind, and name the command that answers it."""
    command = "label" if message_of(task).per_record else task.asks
    raise UserError(f"{path} asks for a {task.asks}: use `curvote client {command}`.")


def check_invitation_fits(
    task: AnyTask, signed_document: SignedTask, invited: Invitation
) -> None:
    """Refuse an invitation to another task, server or key."""
    check_invitation(task, invited)
    _refuse_other_server(invited, signed_document.fingerprint)
    invited.refuse_other_key(signed_document.document["seal_to"])


def read_invitation(path: Path) -> Invitation:
    """Return the invitation in a file."""
    with errors_in_file(path):
        text = _read_bytes(path, envelope.LARGEST_FILE)
        if b"\n{" in text.strip():
            raise UserError(
                "several invitations; each is for one. Give a file of your line alone."
            )
        written = strict_json.parse_json(text, envelope.LARGEST_FILE)
        return Invitation.from_json(written)


def _refuse_other_server(invitation: Invitation, server: str) -> None:
    if invitation.signer not in {None, server}:
        raise UserError(
            f"server {server} signed the task, but the invitation is of server"
            f" {invitation.signer}: one of them was replaced. Nothing was drawn."
        )


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
