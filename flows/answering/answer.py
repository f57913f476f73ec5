"""What `curvote client report`, `vote`, `answer`, `label`, `release` do, in this order.

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

from curvote import envelope, signed, strict_json
from curvote.classes import Classes
from curvote.client import consent, form, outbox, places
from curvote.client.form import Form
from curvote.client.ledger import Entry, Ledger
from curvote.client.outbox import Books
from curvote.client.register import books
from curvote.client.standing import Standing
from curvote.envelope import Invitation
from curvote.errors import InternalError, UserError
from curvote.flows.answering.held import Agreed, Held, told
from curvote.identifier import normal
from curvote.protocols.judging import check_invitation, judged
from curvote.protocols.message import message_of
from curvote.signed import Signed
from curvote.task import Asked


@dataclass(frozen=True)
class Question:
    """What a server asks: a task that it has signed, and an invitation to it."""

    task: Asked
    server: str
    seal_to: str | None
    invitation: Invitation

    @classmethod
    def read(
        cls,
        task: Path,
        invitation: Path,
        asks: str | None,
        *,
        whole: bool = False,
        tied: bool = False,
    ) -> Question:
        """Judge both alone; ``asks`` is the message that is meant, None: any.

        ``whole``: it is about a table of records; ``tied``: about one public record.
        """
        given = signed_task(task)
        invited = invitation_in(invitation)
        asked = judged_in(task, given, invited.server)
        kind = message_of(asked)
        if asks not in {None, asked.asks} or (kind.whole, kind.tied) != (whole, tied):
            refuse_command(task, asked)
        check_fit(asked, given, invited)
        return cls(asked, given.fingerprint, given.document["seal_to"], invited)


@dataclass(frozen=True)
class Owner:
    """Who answers: from which ledger and outbox, and whether a question is skipped.

    ``classes`` are the only ones that the owner agrees to, None: those of the task.
    ``anew`` asks for another release where one was made; ``yes`` agrees beforehand.
    """

    ledger: Path
    outbox: Path
    classes: Classes | None
    anew: bool
    yes: bool

    @classmethod
    def of(
        cls,
        ledger: Path | None,
        outbox: Path | None,
        classes: str | None,
        *,
        anew: bool,
        yes: bool,
    ) -> Owner:
        """Return who answers by the options; ``classes`` is a list as in no,yes."""
        agreed = Classes(classes.split(",")) if classes else None
        where = places.ledger(ledger), places.outbox(outbox)
        return cls(*where, agreed, anew=anew, yes=yes)

    def answer(self, asked: Question, hold: Callable[[Ledger], Held]) -> dict[str, Any]:
        """Release at most once, and return what happened.

        ``hold`` returns what the message is about; it is called where one is drawn.
        """
        with books(self.ledger, places.register()) as opened:
            ledger, _ = opened
            standing = self.standing(opened, asked.server)
            sender, number = self._turn(ledger, asked, standing)
            draw, agreed = _Draw(), standing
            if not outbox.released_before(ledger, asked.task, sender, number):
                consent.refuse_classes(self.classes, asked.task.classes)
                draw.held = held = hold(ledger)
                about = held.about(ledger, standing)
                agreed = self.agree(held, about, asked.task, asked.server)
                held.ready()
            clients = draw.held.clients if draw.held else ()
            path = outbox.release(
                draw,
                task=asked.task,
                invitation=asked.invitation,
                seal_to=asked.seal_to,
                sender=sender,
                number=number,
                books=opened,
                outbox=self.outbox,
                clients=clients or [standing.name],
                told=told(asked.task, asked.invitation, len(clients)),
                settle=agreed.write,
            )
            entry = outbox.released_before(ledger, asked.task, sender, number)
            done = _summary(asked, path, ledger, entry) | {"new": draw.done}
            if draw.held and asked.invitation.server:
                done["notes"] = [*draw.held.notes]
            return done

    def _turn(
        self, ledger: Ledger, asked: Question, standing: Standing
    ) -> tuple[str, int]:
        """Return in whose name a release is, and its number: again, or anew."""
        invited = asked.invitation
        sender = normal(invited.record or "") or invited.server or standing.name
        known = outbox.latest(ledger, asked.task, sender)
        return sender, known + 1 if self.anew else max(known, 1)

    def standing(self, opened: Books, server: str) -> Standing:
        """Settle what a killed call has left; return what can be spent since then."""
        ledger, _ = opened
        outbox.recover(opened, self.outbox)
        standing = Standing.of(ledger)
        consent.refuse_server(standing, server)
        return standing

    def agree(
        self, held: Agreed, standing: Standing, task: Asked, server: str
    ) -> Standing:
        """Say what would be sent, refuse what cannot be, ask on a terminal.

        Returned is what the ledger is to hold from the reservation on, and no earlier:
        a task that is refused pins nobody.
        """
        records = len(held.clients) or 1
        consent.refuse_budget(standing, task.spends(records), records)
        for notice in [*held.notes, *consent.notices(standing, server)]:
            typer.echo(f"curvote: {notice}", err=True)
        typer.echo(held.line(standing, server), err=True)
        if standing.server is None and not (self.yes or sys.stdin.isatty()):
            raise UserError(
                f"server {server} is new, and nobody is here to compare its"
                " fingerprint: `curvote client init --server FINGERPRINT` pins the one"
                " that you got another way, or say --yes. Nothing was drawn."
            )
        ask("Send it?", self.yes)
        return replace(standing, server=server)


@dataclass
class _Draw:
    """The sender's message, drawn when called."""

    held: Held | None = None
    done: bool = False

    def __call__(self) -> dict[str, Any]:
        if self.held is None:
            raise UserError(
                "the release that was known a moment ago was taken back: run again."
            )
        self.done = True
        return self.held.drawn()


def ask(question: str, yes: bool) -> None:
    """Ask on a terminal; anything but yes is a UserError.

    Nothing is asked where ``yes`` was said already, or where no terminal is: there the
    caps in the ledger are the consent. The question goes to standard error, as standard
    output may be read by a program.
    """
    if yes or not sys.stdin.isatty():
        return
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UserError("not agreed to: nothing was drawn, nothing changed.")


def stated(ledger: Ledger, proposal: Form) -> Form:
    """Return the form of the owner's table; without one, ask at a terminal only.

    ``proposal`` is what the task takes the table for.
    """
    found = form.settled(ledger)
    if found is not None:
        return found
    if not sys.stdin.isatty():
        raise UserError(
            "your ledger holds no form of your table, so there is nothing that the task"
            " could be held against: `curvote client form --table FILE` writes a draft,"
            " `curvote client form form.yaml` settles what you made of it. Nothing was"
            " read, nothing drawn."
        )
    typer.echo("the server takes your table for this:", err=True)
    for line in form.lines(proposal):
        typer.echo(f"  {line}", err=True)
    ask("Is that right, for every task to come?", yes=False)
    form.settle(ledger, proposal)
    return proposal


def table_form(ledger: Ledger, task: Any, label: str | None, id_: str | None) -> Form:
    """Return the form of a table of records; ``label`` and ``id_`` may repeat it.

    UserError: they name other columns, and so would charge the same people twice.
    """
    columns = {
        name: form.Column(bounds=(lower, upper))
        for name, lower, upper in task.features
        if name not in {label, id_}
    }
    classes = tuple(task.classes)
    proposal = Form(id=id_, label=label or "label", classes=classes, columns=columns)
    found = stated(ledger, proposal)
    for option, given, own in (("label", label, found.label), ("id", id_, found.id)):
        if given not in {None, own}:
            raise UserError(
                f"--{option} is {given!r}, but by the form in your ledger it is"
                f" {own or 'the row'}. Nothing was read, nothing drawn."
            )
    return found


def _summary(
    asked: Question, path: Path, ledger: Ledger, entry: Entry | None
) -> dict[str, Any]:
    if entry is None:
        raise InternalError("a release is not in the ledger")
    standing = Standing.of(ledger).about(ledger, ledger.members(entry.release))
    left_epsilon, left_delta = standing.left()
    name, record = asked.invitation.server, asked.invitation.record
    named = {"server": name, "signer": asked.server, "records": entry.n_clients}
    return {
        "message": asked.task.asks,
        **(named if name else {"server": asked.server}),
        **({} if record is None else {"record": record}),
        "epsilon": entry.budget.epsilon,
        "delta": entry.budget.delta,
        "envelope": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "cap": standing.cap.epsilon,
        "cap_delta": standing.cap.delta,
        "left": left_epsilon,
        "left_delta": left_delta,
    }


def signed_task(path: Path) -> Signed:
    """Return the signed document in a file; its task is still to be judged."""
    with in_file(path):
        return signed.opened(_bytes(path, signed.LARGEST))


def judged_in(path: Path, given: Signed, server: str | None = None) -> Asked:
    """Return the task of a document that stands in a file, judged alone."""
    with in_file(path):
        return judged(given.document["task"], server)


def refuse_command(path: Path, asked: Asked) -> NoReturn:
    """Say which command answers a task."""
    command = "label" if message_of(asked).tied else asked.asks
    raise UserError(f"{path} asks for a {asked.asks}: use `curvote client {command}`.")


def check_fit(asked: Asked, given: Signed, invited: Invitation) -> None:
    """Refuse an invitation to another task, of another server, or to another key."""
    check_invitation(asked, invited)
    _refuse_other_server(invited, given.fingerprint)
    invited.refuse_other_key(given.document["seal_to"])


def invitation_in(path: Path) -> Invitation:
    """Return the invitation in a file."""
    with in_file(path):
        text = _bytes(path, envelope.LARGEST)
        if b"\n{" in text.strip():
            raise UserError(
                "several invitations; each is for one. Give a file of your line alone."
            )
        written = strict_json.parse(text, envelope.LARGEST)
        return Invitation.from_json(written)


def _refuse_other_server(invitation: Invitation, server: str) -> None:
    if invitation.signer not in {None, server}:
        raise UserError(
            f"server {server} signed the task, but the invitation is of server"
            f" {invitation.signer}: one of them was replaced. Nothing was drawn."
        )


@contextmanager
def in_file(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _bytes(path: Path, largest: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(largest + 1)
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror or error}.") from None
