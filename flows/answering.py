"""What `curvote client report`, `vote` and `answer` do, in this order.

The task is judged alone; the owner agrees; only then is the record read, the release
reserved in the ledger, and its noise drawn.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from curvote import envelope, signed, strict_json
from curvote.classes import Classes
from curvote.client import consent, outbox, places
from curvote.client.outbox import Books
from curvote.client.record import Given, read_form
from curvote.client.register import books
from curvote.client.standing import Standing
from curvote.entropy import SystemEntropy
from curvote.envelope import Invitation
from curvote.errors import UserError
from curvote.protocols.answering import answer
from curvote.protocols.described import described
from curvote.protocols.judging import check_invitation, judged
from curvote.task import Task


@dataclass(frozen=True)
class Asked:
    """What a server asks: a task that it has signed, and an invitation to it."""

    task: Task
    server: str
    seal_to: str | None
    invitation: Invitation

    @classmethod
    def read(cls, task: Path, invitation: Path, asks: str | None) -> Asked:
        """Judge both alone; ``asks`` is the message that is meant, None: any."""
        with _named(task):
            opened = signed.opened(_bytes(task, signed.LARGEST))
            asked = judged(opened.document["task"])
        if asks not in {None, asked.asks}:
            raise UserError(
                f"{task} asks for a {asked.asks}: use `curvote client {asked.asks}`."
            )
        invited = _invitation(invitation)
        check_invitation(asked, invited)
        _refuse_other_server(invited, opened.fingerprint)
        seal_to = opened.document["seal_to"]
        invited.refuse_other_key(seal_to)
        return cls(asked, opened.fingerprint, seal_to, invited)


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

    def answer(self, asked: Asked, curve: Path, label: str) -> dict[str, Any]:
        """Release at most once, and return what happened."""
        with books(self.ledger, places.register()) as opened:
            ledger, _ = opened
            standing = self._standing(opened, asked)
            known = outbox.latest(ledger, asked.task, standing.name)
            number = known + 1 if self.anew else max(known, 1)
            draw = None
            if not outbox.was_released(ledger, asked.task, standing.name, number):
                self._agree(standing, asked)
                replace(standing, server=asked.server).write(ledger)
                # The owner alone hears of an error in the file's form.
                given = read_form(curve, label, asked.task)
                draw = _Draw(asked.task, given, asked.invitation.about)
            path = outbox.release(
                draw or _never,
                task=asked.task,
                invitation=asked.invitation,
                seal_to=asked.seal_to,
                client=standing.name,
                number=number,
                books=opened,
                outbox=self.outbox,
            )
            new = draw is not None and draw.done
            return _summary(asked, path, Standing.of(ledger)) | {"new": new}

    def _standing(self, opened: Books, asked: Asked) -> Standing:
        """Settle what a killed call has left; return what can be spent since then."""
        ledger, _ = opened
        outbox.recover(opened, Standing.of(ledger).name, self.outbox)
        standing = Standing.of(ledger)
        consent.refuse_server(standing, asked.server)
        return standing

    def _agree(self, standing: Standing, asked: Asked) -> None:
        """Say what would be sent, refuse what cannot be, and ask on a terminal."""
        budget = asked.task.budget
        consent.refuse_classes(self.classes, asked.task.classes)
        consent.refuse_budget(standing, budget)
        for notice in consent.notices(standing, asked.server):
            typer.echo(f"curvote: {notice}", err=True)
        what = described(asked.task, asked.invitation.about)
        typer.echo(consent.line(standing, budget, asked.server, what), err=True)
        ask("Send it?", self.yes)


@dataclass
class _Draw:
    """The client's message, drawn with the operating system's entropy when called."""

    task: Task
    given: Given
    about: int | None
    done: bool = False

    def __call__(self) -> dict[str, Any]:
        self.done = True
        return answer(self.task, self.given, self.about, SystemEntropy())


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


def _never() -> dict[str, Any]:
    raise UserError(
        "the release that was known a moment ago was taken back: run again."
    )


def _summary(asked: Asked, path: Path, standing: Standing) -> dict[str, Any]:
    left_epsilon, left_delta = standing.left()
    return {
        "message": asked.task.asks,
        "server": asked.server,
        "epsilon": asked.task.epsilon,
        "delta": asked.task.budget.delta,
        "envelope": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "cap": standing.cap.epsilon,
        "cap_delta": standing.cap.delta,
        "left": left_epsilon,
        "left_delta": left_delta,
    }


def _invitation(path: Path) -> Invitation:
    with _named(path):
        written = strict_json.parse(_bytes(path, envelope.LARGEST), envelope.LARGEST)
        return Invitation.from_json(written)


def _refuse_other_server(invitation: Invitation, server: str) -> None:
    if invitation.signer not in {None, server}:
        raise UserError(
            f"server {server} signed the task, but the invitation is of server"
            f" {invitation.signer}: one of them was replaced. Nothing was drawn."
        )


@contextmanager
def _named(path: Path) -> Iterator[None]:
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
