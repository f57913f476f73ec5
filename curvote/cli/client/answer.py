"""Answers to a server's task: checks, consent, then one release of a record.

The task is judged alone; the owner agrees; only then is a record read, the release
reserved in the ledger, and its noise drawn.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import typer

from curvote.base import validate
from curvote.base.classes import Classes
from curvote.base.entropy import SystemEntropy
from curvote.base.errors import InternalError, UserError
from curvote.base.text import normalise_id, printable_name
from curvote.client import consent, table
from curvote.client.table import Form
from curvote.flows.lines import ask_consent
from curvote.ledger import places, register, session
from curvote.ledger.account import Account, refuse_new_ids
from curvote.ledger.book import Ledger
from curvote.messages import answer as answers
from curvote.messages.answer import answer_about_record, answer_task, describe_answer
from curvote.messages.message import ClientData, Outcome, message_of, payload_at
from curvote.wire import envelope, signing, strict_json
from curvote.wire.task import AnyTask

# What a file of invitations ends in: of one, or of one a line.
ONE_SUFFIX, MANY = ".json", ".jsonl"


class Way(Enum):
    """A way to answer: all the options that say with what, and what for."""

    CURVE = ("invitation", "curve", "label"), "a curve of your own"
    LABEL = ("invitation", "label"), "a record of your own"
    TABLE = ("invitation", "table"), "one message about a whole table"
    REGISTRY = ("table", "invitations"), "a message about each of many records"
    OUTCOME = ("invitation", "answered", "truth"), "what a model said of your record"
    MODEL = ("invitation", "model", "record", "truth"), "a model that runs here"

    def __init__(self, options: tuple[str, ...], purpose: str) -> None:
        *first, last = (f"--{option}" for option in options)
        self.options = options
        self.words = f"{', '.join(first)} and {last} for {purpose}"

    @classmethod
    def of_task(cls, task: AnyTask) -> tuple[Way, ...]:
        """Return the ways to answer a task: its kind of message alone says which."""
        message = message_of(task)
        if message.per_table:
            return (cls.TABLE,)
        if message.about_model:
            return (cls.OUTCOME, cls.MODEL, cls.REGISTRY)
        return (cls.LABEL, cls.REGISTRY) if message.per_record else (cls.CURVE,)


# The ways of each command. `answer` takes any, the others what they were made for.
COMMANDS: Final[Mapping[str, tuple[Way, ...]]] = {
    "answer": tuple(Way),
    "report": (Way.CURVE,),
    "vote": (Way.CURVE,),
    "release": (Way.TABLE,),
    "label": (Way.LABEL, Way.REGISTRY),
}


@dataclass(frozen=True)
class Holdings:
    """The files and words that an owner gives to answer with.

    ``answered`` names what each model said, ``truth`` what is true, ``group`` the
    owner's private group and ``probability`` how sure the model was; a ``model`` that
    runs here answers about the ``record``. ``label_column`` and ``id_column`` repeat
    columns of the form of a table. ``new_people`` says that records unknown to the
    ledger are other people.
    """

    invitation: Path | None
    invitations: Path | None
    curve: Path | None
    label: str | None
    table: Path | None
    label_column: str | None
    id_column: str | None
    new_people: bool
    answered: str | None = None
    truth: str | None = None
    group: str | None = None
    probability: float | None = None
    model: Path | None = None
    record: Path | None = None

    def outcome(self, task: AnyTask) -> Outcome:
        """Return what the model said, which may run here, and what is true."""
        probability, answered = self.probability, str(self.answered).split(",")
        if self.model is not None and self.record is not None:
            kind = message_of(task)
            answer, sure = kind.model_answer(self.model, self.record)
            answered, probability = [answer], kind.stated_probability(task, sure)
            if not answer:  # whoever looks on may know; the server must not
                note = "curvote: the model failed on the record, which counts as wrong"
                typer.echo(note, err=True)
        return Outcome(tuple(answered), str(self.truth), self.group, probability)

    def way(self, command: str) -> Way:
        """Return the way that was chosen; UserError: none that the command knows.

        Nothing is left over: what a task does not ask for, the owner does not give.
        """
        names = (
            *("invitation", "invitations", "curve", "label", "table"),
            *("answered", "truth", "model", "record"),
        )
        chosen = {name for name in names if getattr(self, name) is not None}
        for way in COMMANDS[command]:
            if chosen == set(way.options):
                break
        else:
            ways = ", or ".join(way.words for way in COMMANDS[command])
            raise UserError(f"give {ways}.")
        if way is not Way.TABLE and (self.label_column or self.id_column):
            raise UserError(f"--label-column, --id-column: give {Way.TABLE.words}.")
        beside = self.group is not None or self.probability is not None
        if beside and way not in {Way.OUTCOME, Way.MODEL}:
            raise UserError(f"--group, --probability: give {Way.OUTCOME.words}.")
        return way


@dataclass(frozen=True)
class Proposal:
    """The messages that an owner is asked to agree to.

    ``account`` is charged for them, and ``what`` is in each. There is one about the
    owner's own record, one about each of the ``clients``, or ``together`` one about all
    of them. ``notes`` are further lines for whoever gives consent. ``read`` reads what
    may be read only after it, and returns what draws the one message, with noise of the
    operating system.
    """

    account: Account
    what: str
    clients: Sequence[str] = ()
    notes: Sequence[str] = ()
    together: bool = False
    read: Callable[[], session.Draw] | None = None


@dataclass(frozen=True)
class ServerQuestion:
    """The signed task of a server, and the invitations to it by which it is answered.

    ``invitations`` are by the records' names, as `curvote.base.text.normalise_id`
    spells them; one that is about no record is by "".
    """

    task: AnyTask
    server: str
    seal_to: str | None
    invitations: Mapping[str, envelope.Invitation]

    @property
    def invitation(self) -> envelope.Invitation:
        """The only invitation."""
        (invited,) = self.invitations.values()
        return invited

    @classmethod
    def from_files(cls, command: str, path: Path, holdings: Holdings) -> ServerQuestion:
        """Return the question in the signed task at ``path``, checked throughout.

        It is refused (UserError) unless the ``holdings`` are what its kind of message
        takes, and what the ``command`` is for. No record is read before.
        """
        way = holdings.way(command)
        invited: envelope.Invitation | None = None
        with errors_in_file(path):
            signed = signing.open_signed(_read_bytes(path, signing.LARGEST))
        if holdings.invitation is not None:
            invited = read_invitation(holdings.invitation)
        named = None if invited is None else invited.server
        with errors_in_file(path):
            task = answers.validate_task(signed.document["task"], named)
        ways, asks = Way.of_task(task), task.asks
        if way not in ways or command in {"report", "vote"} - {asks}:
            right = "label" if Way.LABEL in ways else asks
            use = f"use `curvote client {right if right in COMMANDS else 'answer'}`"
            if command == "answer":
                use = "give " + ", or ".join(way.words for way in ways)
            article = "an" if asks[0] in "aeiou" else "a"
            raise UserError(f"{path} asks for {article} {asks}: {use}.")
        fingerprint, seal_to = signed.fingerprint, signed.document["seal_to"]
        question = cls(task, fingerprint, seal_to, {"": invited} if invited else {})
        if invited is not None:
            question.check_invitation(invited)
            return question
        by_record = question.invitations_in(Path(str(holdings.invitations)))
        if not by_record:
            words = f"holds no invitation to the task in {path}."
            raise UserError(f"{holdings.invitations} {words}")
        return replace(question, invitations=by_record)

    def check_invitation(self, invited: envelope.Invitation) -> None:
        """Refuse an invitation to another task, server or key."""
        answers.check_invitation(self.task, invited)
        if invited.signer not in {None, self.server}:
            raise UserError(
                f"server {self.server} signed the task, but the invitation is of server"
                f" {invited.signer}: one of them was replaced. Nothing was drawn."
            )
        invited.refuse_other_key(self.seal_to)

    def invitations_in(self, place: Path) -> dict[str, envelope.Invitation]:
        """Return the invitations to the task in a folder or a file, by record.

        A ``.json`` file holds one, a ``.jsonl`` file one a line. Those to other tasks
        are left alone. UserError: a file that holds none, or two for one record.
        """
        by_record: dict[str, envelope.Invitation] = {}
        digest = self.task.digest()
        for path, invited in _read_invitations(place):
            if invited.task == digest:
                with errors_in_file(path):
                    self.check_invitation(invited)
                    name = invited.id
                    if invited.record is not None:
                        name = normalise_id(invited.record)
                    if by_record.setdefault(name, invited) != invited:
                        words = f"is about record {printable_name(name)}, too."
                        raise UserError(f"another invitation {words}")
        return by_record

    def proposal(
        self, holdings: Holdings, ledger: Ledger, account: Account
    ) -> Proposal:
        """Return the message about the records of the way chosen, which is the task's.

        An owner's own record is read after consent, and errors of its form are shown to
        the owner alone; a table is checked at once, by its form. UserError: a ledger
        that counts for others.
        """
        task: Any = self.task
        invited = self.invitation
        what = describe_answer(task, invited.subject)
        if holdings.table is not None:
            return self._table_proposal(holdings, ledger, account, what)

        def read_curve() -> session.Draw:
            record = table.read_record(
                Path(str(holdings.curve)), str(holdings.label), task
            )
            return lambda: answer_task(task, record, invited.about, SystemEntropy())

        def read_label() -> session.Draw:
            label = validate.one_of(task.classes, label=str(holdings.label))
            place, record = list(task.classes).index(label), str(invited.record)
            return lambda: answer_about_record(task, record, place, SystemEntropy())

        def read_outcome() -> session.Draw:
            outcome = holdings.outcome(task)
            return lambda: answers.answer_outcome(
                task, outcome, invited.about, SystemEntropy()
            )

        if holdings.curve is not None:
            return Proposal(account, what, read=read_curve)
        if holdings.truth is not None:
            return Proposal(account, what, read=read_outcome)
        consent.refuse_registry_ledger(account)
        return Proposal(account, what, read=read_label)

    def _table_proposal(
        self, holdings: Holdings, ledger: Ledger, account: Account, what: str
    ) -> Proposal:
        task: Any = self.task
        path = Path(str(holdings.table))
        form = table_form(ledger, task, holdings.label_column, holdings.id_column)
        form.refuse_misfit(task.features, task.classes)
        records = table.read_records(path, form, task.features, task.classes)
        called, named = str(self.invitation.server), form.record_naming
        consent.refuse_other_sender(account, called, named)
        if not holdings.new_people:
            refuse_new_ids(ledger, records.ids)
        about = account.about(ledger, records.ids)
        about = replace(about, sender_name=called, records=named)

        def draw() -> dict[str, Any]:
            codes = records.codes.astype(np.float64)
            data = ClientData(records.values, records.values, codes)
            return payload_at(message_of(task).draw(task, data, SystemEntropy()), 0)

        return Proposal(about, what, records.ids, records.notes, True, lambda: draw)


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

    def answer(self, question: ServerQuestion, holdings: Holdings) -> dict[str, Any]:
        """Release at most once, and return a summary.

        The ``holdings`` are looked at where a message is drawn, and nowhere else.
        """
        with register.open_books(self.ledger, places.register_path()) as opened:
            ledger, _ = opened
            agreed = self.settled_account(opened, question.server)
            task, invited, name = question.task, question.invitation, agreed.name
            sender = normalise_id(invited.record or "") or invited.server or name
            number = self.number(ledger, task, sender)
            clients, notes, draws = [name], None, []
            draw: session.Draw = _refuse_vanished
            if not session.find_release(ledger, task, sender, number):
                consent.refuse_other_classes(self.classes, task.classes)
                proposal = question.proposal(holdings, ledger, agreed)
                agreed = self.agree(proposal, task, question.server)
                clients, notes = [*proposal.clients] or clients, [*proposal.notes]
                draw = proposal.read() if proposal.read else draw
            facts: dict[str, str | float] = {}
            if invited.record is not None:
                facts["record"] = invited.record
            elif invited.server is not None and notes is not None:
                facts["server"] = invited.server
                if (rho := message_of(task).rho(task, len(clients))) is not None:
                    facts["rho"] = rho

            def draw_once() -> dict[str, Any]:
                draws.append(True)
                return draw()

            path = session.release_message(
                draw_once,
                task=task,
                invitation=invited,
                seal_to=question.seal_to,
                sender=sender,
                number=number,
                books=opened,
                outbox=self.outbox,
                clients=clients,
                facts=facts,
                settle=agreed.write,
            )
            entry = session.find_release(ledger, task, sender, number)
            if entry is None:
                raise InternalError("a release is not in the ledger")
            members = ledger.members(entry.release)
            account = Account.from_ledger(ledger).about(ledger, members)
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
                **room_left(account),
                "new": bool(draws),
            }
            if invited.server and notes is not None:
                done["notes"] = notes
            return done

    def number(self, ledger: Ledger, task: AnyTask, sender: str) -> int:
        """Return the number of the sender's release: the latest, or one more."""
        latest = session.latest_number(ledger, task, sender)
        return latest + 1 if self.anew else max(latest, 1)

    def settled_account(self, opened: session.Books, server: str) -> Account:
        """Recover interrupted releases; return the account's state since then."""
        ledger, _ = opened
        session.recover_releases(opened, self.outbox)
        account = Account.from_ledger(ledger)
        consent.refuse_other_server(account, server)
        return account

    def agree(self, proposal: Proposal, task: AnyTask, server: str) -> Account:
        """Ask for consent to messages; return the account to be recorded.

        Returned is what the ledger is to hold from the reservation on, and no earlier:
        a task that is refused pins nobody.
        """
        account, n = proposal.account, len(proposal.clients)
        records = n if proposal.together else 1
        cost = task.cost(records)
        consent.refuse_excess_budget(account, cost, records)
        for notice in [*proposal.notes, *consent.consent_notices(account, server)]:
            typer.echo(f"curvote: {notice}", err=True)
        terms = account, cost, server, proposal.what, n
        line = consent.consent_line(*terms, together=proposal.together)
        typer.echo(line, err=True)
        if account.server is None and not (self.yes or sys.stdin.isatty()):
            raise UserError(
                f"server {server} is new, and nobody is here to compare its"
                " fingerprint: `curvote client init --server FINGERPRINT` pins the one"
                " that you got another way, or say --yes. Nothing was drawn."
            )
        ask_consent("Send it?", self.yes)
        return replace(account, server=server)


def room_left(account: Account) -> dict[str, float]:
    """Return the cap of an account, and what is left of it."""
    left_epsilon, left_delta = account.remaining()
    return {
        "cap": account.cap.epsilon,
        "cap_delta": account.cap.delta,
        "left": left_epsilon,
        "left_delta": left_delta,
    }


def _refuse_vanished() -> NoReturn:
    words = "the release that was known a moment ago was taken back: run again."
    raise UserError(words)


def stated_form(ledger: Ledger, proposal: Form) -> Form:
    """Return the owner's table form; without one, propose one on a terminal.

    ``proposal`` is what the task takes the table for.
    """
    current = table.current_form(ledger)
    if current is not None:
        return current
    if not sys.stdin.isatty():
        raise UserError(
            "your ledger does not say what your table holds, so nobody can tell whether"
            " the task asks too much: draft a form by `curvote client form --table"
            " FILE`, settle it by `curvote client form form.yaml`. Nothing was read,"
            " nothing drawn."
        )
    typer.echo("the server thinks that your table holds this:", err=True)
    for line in table.describe_form(proposal):
        typer.echo(f"  {line}", err=True)
    ask_consent("Is that right, for this task and all later ones?", yes=False)
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
    stated_columns = (
        ("label-column", label, form_found.label),
        ("id-column", id_, form_found.id),
    )
    for option, column, stated_column in stated_columns:
        if column not in {None, stated_column}:
            raise UserError(
                f"--{option} is {column!r}, but by the form in your ledger it is"
                f" {stated_column or 'the row'}. Nothing was read, nothing drawn."
            )
    return form_found


def read_invitation(path: Path) -> envelope.Invitation:
    """Return the invitation in a file."""
    with errors_in_file(path):
        text = _read_bytes(path, envelope.LARGEST_ENVELOPE)
        if b"\n{" in text.strip():
            raise UserError(
                "it holds several invitations: give a file with your own line alone."
            )
        written = strict_json.parse_json(text, envelope.LARGEST_ENVELOPE)
        return envelope.Invitation.from_json(written)


def _read_invitations(place: Path) -> Iterator[tuple[Path, envelope.Invitation]]:
    paths = [place]
    if place.is_dir():
        paths = sorted(p for p in place.iterdir() if p.suffix in {ONE_SUFFIX, MANY})
    for path in paths:
        if path.suffix != MANY:
            yield path, read_invitation(path)
            continue
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            why = error.strerror or error
            raise UserError(f"{path} cannot be read: {why}.") from None
        for number, line in enumerate(lines, 1):
            with errors_in_file(path), errors_in_file(Path(f"line {number}")):
                written = strict_json.parse_json(line, envelope.LARGEST_ENVELOPE)
                yield path, envelope.Invitation.from_json(written)


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
