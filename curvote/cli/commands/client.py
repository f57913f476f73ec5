"""The commands `curvote client`: answers to a server's tasks, without a project."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from curvote.base.errors import UserError
from curvote.base.text import format_budget, format_factor
from curvote.cli import terminal
from curvote.client import sending
from curvote.ledger import places

if TYPE_CHECKING:
    from curvote.ledger.book import Ledger
    from curvote.wire.receipt import Receipt

TaskFile = Annotated[Path, typer.Option("--task", help="The server's signed task.")]
Invitation = Annotated[
    Path | None,
    typer.Option("--invitation", help="The invitation that you were sent (JSON)."),
]
Invitations = Annotated[
    Path | None,
    typer.Option(
        "--invitations", help="Their folder, or a .jsonl with one on each line."
    ),
]
Curve = Annotated[
    Path | None,
    typer.Option(
        "--curve",
        help="CSV or Parquet: one row, one column, or times and measurements.",
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", help="Your class, as the task names it.")
]
Answered = Annotated[
    str | None,
    typer.Option("--answered", help="What the model said of you; of two models, A,B."),
]
Truth = Annotated[str | None, typer.Option("--truth", help="What is true of you.")]
Group = Annotated[
    str | None, typer.Option("--group", help="Your group, which the answer hides.")
]
Probability = Annotated[
    float | None, typer.Option("--probability", help="How sure the model was, 0 to 1.")
]
Model = Annotated[
    Path | None,
    typer.Option("--model", help="The model, to run it here: .skops or .onnx."),
]
Record = Annotated[
    Path | None,
    typer.Option("--record", help="Your record for --model: one row below its names."),
]
TableFile = Annotated[
    Path | None, typer.Option("--table", help="CSV or Parquet: a row for each record.")
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label-column", help="Column with the class, as in your form."),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id-column", help="Column that names each record, as in your form."),
]
NewPeople = Annotated[
    bool,
    typer.Option(
        "--new-people",
        help="Records that your ledger does not know are people it never met.",
    ),
]
FormFile = Annotated[
    Path | None,
    typer.Option(
        "--form", help="Also settle what your table holds: its form, a YAML file."
    ),
]
ClassList = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="The classes that you agree to, as in no,yes: a task with others is"
        " refused unread. Needed where nobody sits at a terminal.",
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="File that counts what was released about you (default: your own).",
    ),
]
Outbox = Annotated[
    Path | None,
    typer.Option("--outbox", help="Folder for the envelope (default: your own)."),
]
NewRelease = Annotated[
    bool, typer.Option("--new-release", help="Answer again: spends epsilon again.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree without being asked.")]
Name = Annotated[
    str | None, typer.Option("--name", help="Your name in your ledger (default: me).")
]
Cap = Annotated[
    float | None,
    typer.Option(
        "--cap", help="The most epsilon that you will ever spend (default: 2)."
    ),
]
CapDelta = Annotated[
    float | None,
    typer.Option("--cap-delta", help="The most delta that you will ever spend."),
]
Server = Annotated[
    str | None,
    typer.Option("--server", help="Fingerprint of the only server that you answer."),
]
Send = Annotated[
    str | None,
    typer.Option(
        "--send",
        metavar="URL",
        help="Send the envelope to this address, again and again until it is accepted.",
    ),
]


def print_answer(done: dict[str, Any], as_json: bool) -> None:
    """Print the summary of one message, or of the messages of a registry's table."""
    if as_json:
        terminal.print_json(done)
        return
    message, budget = done["message"], format_budget(done["epsilon"], done["delta"])
    before = "released before; nothing more was drawn or spent"
    if "before" in done:
        if done["new"]:
            typer.echo(f"released {done['records']} {message}s, each {budget}")
        if done["before"]:
            typer.echo(f"{done['before']} {message}s were {before}")
        typer.echo(f"envelopes {done['outbox']}")
    else:
        about = f" about {done['records']} records" if "records" in done else ""
        released = f"released one {message}{about}, {budget}"
        typer.echo(released if done["new"] else f"this {message} was {before}")
        typer.echo(f"envelope  {done['envelope']}\nSHA-256   {done['sha256']}")
    if "sent" in done:
        typer.echo(f"sent      {done['sent']} ({done['server_address']})")
    if "receipt" in done:
        typer.echo(f"receipt   {done['receipt'] or 'none'}")
    rest, cap = (format_budget(done[k], done[f"{k}_delta"]) for k in ("left", "cap"))
    typer.echo(f"left      {rest} of your cap of {cap}")


def describe_account(ledger: Ledger) -> list[str]:
    """Return the state of a ledger's account, a line each."""
    from curvote.client.table import current_form, describe_form
    from curvote.ledger.account import POPULATION, Account

    owner_account, form_stated = Account.from_ledger(ledger), current_form(ledger)
    spent = ledger.most_spent_in(POPULATION).to_floats()
    cap = format_budget(owner_account.cap.epsilon, owner_account.cap.delta)
    note_of_cap = "" if owner_account.chosen else " (by default; you set none yet)"
    note_of_records = ", the most of any record" if owner_account.records else ""
    return [
        f"ledger  {ledger.path}",
        f"name    {owner_account.name}",
        f"cap     {cap}{note_of_cap}",
        f"spent   {format_budget(*spent)}{note_of_records}",
        f"server  {owner_account.server or 'the first whose task you answer'}",
        *(
            describe_form(form_stated)
            if form_stated
            else ["form    none (`curvote client form` states one for a table)"]
        ),
    ]


def answer_and_send(
    make: Callable[[], dict[str, Any]], task: str, send: str | None, as_json: bool
) -> None:
    """Release a message, send it if ``send`` names a service, print both.

    One that was released before is sent from the outbox, and nothing is drawn. What was
    released is said whatever becomes of the sending. The receipt for an answer to the
    task with digest ``task`` is kept beside the envelope.
    """
    from curvote.client import receipts

    if send is None:
        print_answer(make(), as_json)
        return
    sending.service_address(send)  # refused before anything is drawn
    done = make()
    done["server_address"] = send
    try:
        path = Path(done["envelope"])
        salt = receipts.salt_beside(path)
        answer = sending.send_envelope(send, path.read_bytes(), salt=salt)
        done |= {"sent": answer.outcome, "receipt": None}
    except UserError:
        print_answer(done | {"sent": "refused"}, as_json)
        raise
    except sending.NotSent as failed:
        print_answer(done | {"sent": "not yet"}, as_json)
        typer.echo(f"curvote: {failed}", err=True)
        raise typer.Exit(1) from None
    if answer.receipt is not None:
        agreed = task, done["epsilon"], done.get("signer", done["server"])
        try:
            receipt_path = receipts.keep_receipt(path, answer.receipt, *agreed)
            done["receipt"] = str(receipt_path)
        except (UserError, OSError) as error:
            typer.echo(f"curvote: the server's receipt is none: {error}", err=True)
    print_answer(done, as_json)


app = typer.Typer(
    name="client",
    help="Answer a server with one noised message about yourself or your table.",
    no_args_is_help=True,
)

# What options of an earlier curvote became; a task must never set them.
_REMOVED_OPTIONS: Final = {
    "--cap": "your cap stands in your ledger: `curvote client init --cap E` sets it,"
    " once, and `curvote client raise-cap` raises it",
    "--client": "your name stands in your ledger: `curvote client init --name N` sets"
    " it, once",
}


class _Alias(NamedTuple):
    """Another name of `answer`, for some tasks: its help, and the options it takes."""

    help: str
    required: str
    optional: str
    table_help: str | None = None
    former: Mapping[str, str] = MappingProxyType({})


_OWNER: Final = "ledger outbox classes new_release"
ALIASES: Final = {
    "report": _Alias(
        "Send your curve and label, noised, once.",
        "task curve label invitation",
        f"{_OWNER} send yes as_json",
    ),
    "vote": _Alias(
        "Send one noised bit: was the classifier right for you?",
        "task curve label invitation",
        f"{_OWNER} send yes as_json",
    ),
    "release": _Alias(
        "Send noised sums over all records of your table, once.",
        "task invitation table",
        f"label_column id_column {_OWNER} new_people send yes as_json",
        former={"--label": "--label-column", "--id": "--id-column"},
    ),
    "label": _Alias(
        "Send one noised code of the label of a public record, or of each of a table.",
        "task",
        f"invitation label table invitations {_OWNER} new_people yes as_json",
        table_help="CSV or Parquet with columns record and label.",
    ),
}


class _AnsweringCommand(terminal.RespelledCommand):
    """`answer`, or the alias of this name; it takes classes as A B."""

    def __init__(self, name: str, *, params: list[Any], **more: Any) -> None:
        if alias := ALIASES.get(name):
            self.former, of_name = alias.former, {param.name: param for param in params}
            required = alias.required.split()
            params = [of_name[word] for word in [*required, *alias.optional.split()]]
            for param in params:
                param.required = param.name in required
            of_name["table"].help = alias.table_help or of_name["table"].help
        super().__init__(name, params=params, **more)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for word in args:
            option = word.partition("=")[0]
            if option in _REMOVED_OPTIONS:
                raise UserError(f"{option} is gone: {_REMOVED_OPTIONS[option]}.")
        if "--classes" in args:
            first = args.index("--classes") + 1
            rest = args[first + 1 :]  # a class may be called -1, but not --1
            more = [*takewhile(lambda word: not word.startswith("--"), rest)]
            named = ",".join([*args[first : first + 1], *more])
            args = [*args[:first], named, *rest[len(more) :]]
        return super().parse_args(ctx, args)


@app.command(cls=_AnsweringCommand)
def answer(
    ctx: typer.Context,
    *,
    task: TaskFile,
    invitation: Invitation = None,
    curve: Curve = None,
    label: Label = None,
    answered: Answered = None,
    truth: Truth = None,
    group: Group = None,
    probability: Probability = None,
    model: Model = None,
    record: Record = None,
    table: TableFile = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    invitations: Invitations = None,
    ledger: LedgerFile = None,
    outbox: Outbox = None,
    classes: ClassList = None,
    new_release: NewRelease = False,
    new_people: NewPeople = False,
    send: Send = None,
    yes: Yes = False,
    as_json: terminal.Json = False,
) -> None:
    """Answer a task: send the one noised message that it asks for.

    Give what it is about: --curve and --label, --label, --answered and --truth, or
    --table. A task that asks for anything else is refused.
    """
    from curvote.base.classes import Classes
    from curvote.cli.client.answer import AnsweringOwner, Holdings, ServerQuestion

    command = str(ctx.command.name)
    holdings = Holdings(
        *(invitation, invitations, curve, label, table, label_column, id_column),
        new_people,
        *(answered, truth, group, probability, model, record),
    )
    if invitations and send:
        raise UserError(
            "--send sends one envelope, but --invitations makes many: leave --send out,"
            " then send them from the outbox."
        )
    with terminal.interruptible(f"client {command}"):
        question = ServerQuestion.from_files(command, task, holdings)
        owner = AnsweringOwner(
            places.ledger_path(ledger),
            places.outbox_path(outbox),
            Classes(classes.split(",")) if classes else None,
            anew=new_release,
            yes=yes,
        )
        if invitations is None:
            digest = question.invitation.task
            answer_and_send(
                lambda: owner.answer(question, holdings), digest, send, as_json
            )
            return
        from curvote.cli.client.table import answer_table

        print_answer(answer_table(owner, question, holdings), as_json)


for _name, _alias in ALIASES.items():
    app.command(_name, help=_alias.help, cls=_AnsweringCommand)(answer)


class _PageCommand(terminal.RespelledCommand):
    former = MappingProxyType({"TO": "--out"})


@app.command(cls=_PageCommand)
def page(
    *,
    to: Annotated[Path | None, typer.Argument(hidden=True)] = None,
    out: Annotated[Path, typer.Option("--out", help="New file to write.")] = Path(
        "curvote-client.html"
    ),
    send: Annotated[
        str | None,
        typer.Option(
            "--send", metavar="URL", help="The one intake to which the page may post."
        ),
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option("--words", help="TOML or JSON with the page's words, translated."),
    ] = None,
    as_json: terminal.Json = False,
) -> None:
    """Write the page with which people answer a task in their browser."""
    from curvote.client.page import browser_page

    if to is not None:
        terminal.note_former_name("TO", "--out")
        out = to
    text = browser_page(send, words)
    try:
        with out.open("xb") as file:
            file.write(text)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(
            f"{out} cannot be written: {why}. Name another file:"
            " `curvote client page --out FILE`."
        ) from None
    digest = hashlib.sha256(text).hexdigest()
    if as_json:
        terminal.print_json({"page": str(out), "sha256": digest})
        return
    typer.echo(f"page     {out}\nSHA-256  {digest}")


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
    """Begin your ledger, once: your name, the most you will spend, whom you answer."""
    from curvote.client import table as forms
    from curvote.ledger.account import AccountOptions, open_account
    from curvote.ledger.register import open_books

    form_stated = forms.read_table_form(form) if form else None
    with open_books(places.ledger_path(ledger), places.register_path()) as (book, _):
        open_account(book, AccountOptions(name, cap, cap_delta, server))
        if form_stated is not None:
            forms.store_form(book, form_stated)
        for line in describe_account(book):
            typer.echo(line)


@app.command("form")
def form(
    file: Annotated[Path | None, typer.Argument(help="Form to settle (YAML).")] = None,
    table: Annotated[
        Path | None, typer.Option("--table", help="Draft a form for this table.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="File for the draft.")] = Path(
        "form.yaml"
    ),
    ledger: LedgerFile = None,
) -> None:
    """State once what your table holds; tasks that ask for other things are refused."""
    from curvote.client import table as forms
    from curvote.ledger.register import open_books

    if (file is None) == (table is None):
        raise UserError("--table FILE drafts a form, FORM.yaml settles one: give one.")
    if table is not None:
        text = forms.draft_form(table)
        try:
            with out.open("x", encoding="utf-8") as new:  # never over another
                new.write(text)
        except OSError as error:
            raise UserError(f"{out}: {error.strerror or error}.") from None
        typer.echo(
            f"written: {out}\nState in it what you know without the table; then type:"
        )
        typer.echo(f"  curvote client form {out}")
        return
    form_stated = forms.read_table_form(Path(str(file)))
    with open_books(places.ledger_path(ledger), places.register_path()) as (book, _):
        forms.store_form(book, form_stated)
        for line in forms.describe_form(form_stated):
            typer.echo(line)


@app.command()
def show(ledger: LedgerFile = None, as_json: terminal.Json = False) -> None:
    """Show your ledger: name, cap, what is spent, whom you answer, your form."""
    from curvote.client import table as forms
    from curvote.ledger.account import POPULATION, Account
    from curvote.ledger.book import open_existing

    path = places.ledger_path(ledger)
    book = open_existing(path)
    if book is None:
        raise UserError(f"no ledger {path} yet: `curvote client init` begins it.")
    with book:
        if not as_json:
            for line in describe_account(book):
                typer.echo(line)
            return
        account_shown = Account.from_ledger(book)
        worst = book.most_spent_in(POPULATION).to_floats()
        form_stated = forms.current_form(book)
        terminal.print_json(
            {
                "ledger": str(path),
                "name": account_shown.name,
                "cap": account_shown.cap.epsilon,
                "cap_delta": account_shown.cap.delta,
                "spent": worst[0],
                "spent_delta": worst[1],
                "server": account_shown.server,
                "times": sum(e.counts for e in book.entries(POPULATION)),
                "form": form_stated.model_dump(mode="json") if form_stated else None,
            }
        )


@app.command()
def verify(
    receipt: Annotated[Path, typer.Argument(help="The receipt (.receipt).")],
    leaves: Annotated[
        Path, typer.Option("--leaves", help="All leaves of its round, or its path.")
    ],
    root: Annotated[
        str | None, typer.Option("--root", help="The root that you got another way.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="The release's certificate.")
    ] = None,
    task: Annotated[
        Path | None, typer.Option("--task", help="The signed task that it answered.")
    ] = None,
    as_json: terminal.Json = False,
) -> None:
    """Check by a receipt that your envelope was counted, once, and at which epsilon."""
    from curvote.client import receipts
    from curvote.wire.receipt import read_receipt

    try:
        kept_receipt = read_receipt(receipt.read_bytes())
        roots: list[tuple[str, int | None]] = [] if root is None else [(root, None)]
        if certificate is not None:
            roots += _certified_roots(certificate.read_bytes(), kept_receipt)
        signed = task.read_bytes() if task else None
        proved = receipts.verify_receipt(
            kept_receipt, leaves.read_bytes(), roots, task=signed
        )
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}.") from None
    if as_json:
        terminal.print_json(proved)
        return
    for line in receipts.describe_verification(proved):
        typer.echo(line)


def _certified_roots(data: bytes, receipt: Receipt) -> list[tuple[str, int | None]]:
    """Return the roots that a certificate states for the receipt's task.

    UserError: it does not hold, is signed by another server than the receipt, or knows
    no root of that task; or the receipt is not signed, and anybody's would do.
    """
    from curvote.report.certificate import verify as checker

    if receipt.signer is None:
        raise UserError(
            "the receipt is not signed, so it does not say whose certificate is right:"
            " check that with verify.py --signer, and give its root as --root."
        )
    try:
        checker.check(data, receipt.signer)
    except checker.RefusedError as error:
        raise UserError(f"the certificate does not hold: {error}.") from None
    messages = json.loads(data)["certificate"]["messages"]
    trees = [m["envelopes"] for m in messages if m["task"]["digest"] == receipt.task]
    roots = [(tree["root"], tree["count"]) for tree in trees if tree["root"]]
    if not roots:
        raise UserError("the certificate states no root of the receipt's task.")
    return roots


@app.command("raise-cap")
def raise_cap(
    cap: Annotated[float, typer.Option("--cap", help="The new cap: the most epsilon.")],
    cap_delta: CapDelta = None,
    ledger: LedgerFile = None,
    yes: Yes = False,
) -> None:
    """Allow more to be spent in all, for good; your ledger records it."""
    from curvote.flows.lines import ask_consent
    from curvote.ledger.account import POPULATION, plan_raise
    from curvote.ledger.register import open_books

    with open_books(places.ledger_path(ledger), places.register_path()) as (book, _):
        before, after = plan_raise(book, cap, cap_delta)
        for word, budget in (("from", before), ("to", after)):
            cost = format_budget(budget.epsilon, budget.delta)
            factor = f"a factor of {format_factor(budget.epsilon)}"
            odds = f"whoever reads it may change odds about you by {factor}"
            typer.echo(f"{word:4} {cost}: {odds}", err=True)
        ask_consent("Raise it for good?", yes)
        book.raise_cap(POPULATION, after)
    typer.echo(f"cap  {format_budget(after.epsilon, after.delta)}")
