"""The command `curvote client`: the owner's side, without any project.

All it needs is a curve (or a label, or a table), the published task and an invitation;
what was released, and how much may be, stands in the owner's own ledger.
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

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
    FormFile,
    IdColumn,
    InvitationFile,
    Label,
    LabelColumn,
    LedgerFile,
    Name,
    NewPeople,
    NewRelease,
    Outbox,
    Send,
    Server,
    TableFile,
    TaskFile,
    Yes,
)
from curvote.flows.answering.said import account
from curvote.flows.answering.sending import answer
from curvote.flows.commands.label import label
from curvote.flows.commands.page import page
from curvote.flows.output.terminal import Json, interruptible, say_json

if TYPE_CHECKING:
    from curvote.client.ledger import Ledger

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
            lambda: owner.answer(asked, lambda _: OwnRecord(*about, curve, label)),
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
    label: LabelColumn = None,
    id_: IdColumn = None,
    ledger: LedgerFile = None,
    outbox: Outbox = None,
    classes: ClassList = None,
    new_release: NewRelease = False,
    new_people: NewPeople = False,
    send: Send = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Release one noised object about all records of your table, once."""
    from curvote.flows.answering.answer import Owner, Question, table_form
    from curvote.flows.answering.held import Table

    asked = Question.read(task, invitation, None, whole=True)
    owner = Owner.of(ledger, outbox, classes, anew=new_release, yes=yes)

    def hold(own: Ledger) -> Table:
        form = table_form(own, asked.task, label, id_)
        return Table(asked.task, asked.invitation, table, form, new_people)

    with interruptible("client release"):
        answer(lambda: owner.answer(asked, hold), send, as_json)


app.command()(label)
app.command()(page)


@app.command()
def init(
    *,
    ledger: LedgerFile = None,
    name: Name = None,
    cap: Cap = None,
    cap_delta: CapDelta = None,
    server: Server = None,
    form: FormFile = None,
) -> None:
    """Set up your ledger, once: your name, what you will spend, whom you answer."""
    from curvote.client import form as forms
    from curvote.client.register import books
    from curvote.client.standing import Wanted, begin

    stated = forms.read(form) if form else None
    with books(places.ledger(ledger), places.register()) as (own, _):
        wanted = Wanted(name, cap, cap_delta, server)
        begin(own, wanted)
        if stated is not None:
            forms.settle(own, stated)
        for line in account(own):
            typer.echo(line)


@app.command("form")
def form(
    file: Annotated[
        Path | None, typer.Argument(help="The form that you made (YAML): settle it.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option("--table", help="Write a draft for this table.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Where the draft is put.")] = Path(
        "form.yaml"
    ),
    ledger: LedgerFile = None,
) -> None:
    """State once what your table is; every task is held against that alone."""
    from curvote.client import form as forms
    from curvote.client.register import books

    if (file is None) == (table is None):
        raise UserError("give --table FILE for a draft, or the FORM.yaml to settle.")
    if table is not None:
        text = forms.draft(table)
        try:
            with out.open("x", encoding="utf-8") as new:  # never over another
                new.write(text)
        except OSError as error:
            raise UserError(f"{out}: {error.strerror or error}.") from None
        typer.echo(
            f"written: {out}\nState what you know of the table without it; then:"
        )
        typer.echo(f"  curvote client form {out}")
        return
    stated = forms.read(Path(str(file)))
    with books(places.ledger(ledger), places.register()) as (own, _):
        forms.settle(own, stated)
        for line in forms.lines(stated):
            typer.echo(line)


@app.command()
def show(ledger: LedgerFile = None, as_json: Json = False) -> None:
    """Say who you are, what you will spend, have spent, whom you answer, your form."""
    from curvote.client import form as forms
    from curvote.client.ledger import existing
    from curvote.client.standing import POPULATION, Standing

    path = places.ledger(ledger)
    own = existing(path)
    if own is None:
        raise UserError(f"there is no ledger {path} yet: `curvote client init`.")
    with own:
        if not as_json:
            for line in account(own):
                typer.echo(line)
            return
        standing, worst = Standing.of(own), own.worst(POPULATION).floats()
        stated = forms.settled(own)
        say_json(
            {
                "ledger": str(path),
                "name": standing.name,
                "cap": standing.cap.epsilon,
                "cap_delta": standing.cap.delta,
                "spent": worst[0],
                "spent_delta": worst[1],
                "server": standing.server,
                "releases": sum(e.counts for e in own.entries(POPULATION)),
                "form": stated.model_dump(mode="json") if stated else None,
            }
        )


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
