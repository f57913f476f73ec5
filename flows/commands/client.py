"""The command `curvote client`: the owner's side, without any project.

All it needs is a curve (or a label, or a table), the published task and an invitation;
what was released, and how much may be, stands in the owner's own ledger.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from curvote.client import places
from curvote.client.words import factor, said
from curvote.errors import UserError
from curvote.flows.answering.options import (
    Cap,
    CapDelta,
    ClassList,
    Curve,
    IdColumn,
    InvitationFile,
    Label,
    LabelColumn,
    LedgerFile,
    Name,
    NewRelease,
    Outbox,
    Send,
    Server,
    TableFile,
    TaskFile,
    Yes,
)
from curvote.flows.answering.sending import answer
from curvote.flows.commands.label import label
from curvote.flows.commands.page import page
from curvote.flows.output.terminal import Json, interruptible

app = typer.Typer(
    name="client",
    help="Release one noised message, once: of your curve, your label, your table.",
    no_args_is_help=True,
)

# What options of an earlier curvote became; a task must never set them.
_FORMER: Final = {
    "--cap": "your cap stands in your ledger: `curvote client init --cap E` sets it,"
    " once, and `curvote client raise-cap` raises it",
    "--client": "your name stands in your ledger: `curvote client init --name N` sets"
    " it, once",
}


_CLASSES: Final = "--classes"


class _Answering(TyperCommand):
    """A command that says what its former options became, and still takes A B."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for word in args:
            option = word.partition("=")[0]
            if option in _FORMER:
                raise UserError(f"there is no {option} any more: {_FORMER[option]}.")
        return super().parse_args(ctx, _listed(args))


def _listed(args: list[str]) -> list[str]:
    """Return the words with those that follow --classes as one list: A B is A,B."""
    if _CLASSES not in args:
        return args
    first = args.index(_CLASSES) + 1
    rest = args[first + 1 :]  # a class may be called -1, but not --1
    more = [*takewhile(lambda word: not word.startswith("--"), rest)]
    named = ",".join([*args[first : first + 1], *more])
    return [*args[:first], named, *rest[len(more) :]]


def _command(name: str, asks: str | None, text: str) -> None:
    """Add a command that answers tasks asking for ``asks``; None: any task."""

    def command(
        *,
        task: TaskFile,
        curve: Curve,
        label: Label,
        invitation: InvitationFile,
        ledger: LedgerFile = None,
        outbox: Outbox = None,
        classes: ClassList = None,
        new_release: NewRelease = False,
        send: Send = None,
        yes: Yes = False,
        as_json: Json = False,
    ) -> None:
        from curvote.flows.answering.answer import Owner, Question
        from curvote.flows.answering.held import OwnRecord

        asked = Question.read(task, invitation, asks)
        about = asked.task, asked.invitation.about
        owner = Owner.of(ledger, outbox, classes, anew=new_release, yes=yes)
        answer(
            lambda: owner.answer(asked, lambda: OwnRecord(*about, curve, label)),
            send,
            as_json,
        )

    app.command(name, help=text, cls=_Answering)(command)


_command("report", "report", "Release your noised curve and label, once.")
_command("vote", "vote", "Release one noised bit: was the classifier right for you?")
_command("answer", None, "Release whatever the task asks for, of whatever protocol.")


@app.command()
def release(
    *,
    task: TaskFile,
    invitation: InvitationFile,
    table: TableFile,
    label: LabelColumn,
    id_: IdColumn = None,
    ledger: LedgerFile = None,
    outbox: Outbox = None,
    classes: ClassList = None,
    new_release: NewRelease = False,
    send: Send = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Release one noised object about all records of your table, once."""
    from curvote.flows.answering.answer import Owner, Question
    from curvote.flows.answering.held import Table

    asked = Question.read(task, invitation, None, whole=True)
    known = asked.task, asked.invitation
    owner = Owner.of(ledger, outbox, classes, anew=new_release, yes=yes)
    with interruptible("client release"):
        answer(
            lambda: owner.answer(asked, lambda: Table(*known, table, label, id_)),
            send,
            as_json,
        )


app.command()(label)
app.command()(page)


@app.command()
def init(
    ledger: LedgerFile = None,
    name: Name = None,
    cap: Cap = None,
    cap_delta: CapDelta = None,
    server: Server = None,
) -> None:
    """Set up your ledger, once: your name, what you will spend, whom you answer."""
    from curvote.client.register import books
    from curvote.client.standing import Wanted, begin

    with books(places.ledger(ledger), places.register()) as (own, _):
        wanted = Wanted(name, cap, cap_delta, server)
        standing = begin(own, wanted)
        typer.echo(f"ledger  {own.path}\nname    {standing.name}")
    typer.echo(f"cap     {said(standing.cap.epsilon, standing.cap.delta)}")
    typer.echo(f"server  {standing.server or 'the first whose task you answer'}")


@app.command("raise-cap")
def raise_cap(
    cap: Annotated[float, typer.Option("--cap", help="The new cap on epsilon.")],
    cap_delta: CapDelta = None,
    ledger: LedgerFile = None,
    yes: Yes = False,
) -> None:
    """Raise what you will spend in all; your ledger keeps a record of it."""
    from curvote.client.register import books
    from curvote.client.standing import POPULATION, raised
    from curvote.flows.answering.answer import ask

    with books(places.ledger(ledger), places.register()) as (own, _):
        before, after = raised(own, cap, cap_delta)
        for word, budget in (("from", before), ("to", after)):
            typer.echo(
                f"{word:4} {said(budget.epsilon, budget.delta)}: odds about you may"
                f" change by a factor of {factor(budget.epsilon)}",
                err=True,
            )
        ask("Raise it for ever?", yes)
        own.raise_cap(POPULATION, after)
    typer.echo(f"cap  {said(after.epsilon, after.delta)}")
