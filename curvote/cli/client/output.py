"""Output of the commands of `curvote client`, and sending of envelopes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from curvote.base.errors import UserError
from curvote.base.text import format_budget
from curvote.cli.terminal import print_json
from curvote.client import sending

if TYPE_CHECKING:
    from curvote.ledger.book import Ledger


def print_answer(done: dict[str, Any], as_json: bool) -> None:
    """Print the summary of one message."""
    if as_json:
        print_json(done)
        return
    message, budget = done["message"], format_budget(done["epsilon"], done["delta"])
    about = f" about {done['records']} records" if "records" in done else ""
    typer.echo(
        f"released one {message}{about}, {budget}"
        if done["new"]
        else f"this {message} was released before: nothing was drawn, nothing spent"
    )
    typer.echo(f"envelope  {done['envelope']}\nSHA-256   {done['sha256']}")
    if "sent" in done:
        typer.echo(f"sent      {done['sent']} ({done['server_address']})")
    _print_remaining(done)


def print_answers(done: dict[str, Any], as_json: bool) -> None:
    """Print the summary of the messages of a table."""
    if as_json:
        print_json(done)
        return
    budget = format_budget(done["epsilon"], done["delta"])
    if done["new"]:
        typer.echo(f"released {done['records']} {done['message']}s, each {budget}")
    if done["before"]:
        typer.echo(
            f"{done['before']} {done['message']}s were released before: nothing was"
            " drawn, nothing spent"
        )
    typer.echo(f"envelopes {done['outbox']}")
    _print_remaining(done)


def describe_account(ledger: Ledger) -> list[str]:
    """Return the state of a ledger's account, a line each."""
    from curvote.client.table import current_form, describe_form
    from curvote.ledger.account import POPULATION, Account

    owner_account, form_stated = Account.from_ledger(ledger), current_form(ledger)
    spent = ledger.most_spent_in(POPULATION).to_floats()
    cap = format_budget(owner_account.cap.epsilon, owner_account.cap.delta)
    note_of_records = ", the most of any record" if owner_account.records else ""
    return [
        f"ledger  {ledger.path}",
        f"name    {owner_account.name}",
        (
            "cap    "
            f" {cap}"
            f"{'' if owner_account.chosen else ' (the house has it; not set yet)'}"
        ),
        f"spent   {format_budget(*spent)}{note_of_records}",
        f"server  {owner_account.server or 'the first whose task you answer'}",
        *(
            describe_form(form_stated)
            if form_stated
            else ["form    none stated (a table needs one)"]
        ),
    ]


def _print_remaining(done: dict[str, Any]) -> None:
    remaining, cap = (
        format_budget(done[k], done[f"{k}_delta"]) for k in ("left", "cap")
    )
    typer.echo(f"left      {remaining} of your cap of {cap}")


def answer_and_send(
    make: Callable[[], dict[str, Any]], send: str | None, as_json: bool
) -> None:
    """Release a message, send it if ``send`` names a service, print both.

    One that was released before is sent from the outbox, and nothing is drawn. What was
    released is said whatever becomes of the sending.
    """
    if send is None:
        print_answer(make(), as_json)
        return
    sending.service_address(send)  # refused before anything is drawn
    done = make()
    done["server_address"] = send
    try:
        done["sent"] = sending.send_envelope(send, Path(done["envelope"]).read_bytes())
    except UserError:
        print_answer(done | {"sent": "refused"}, as_json)
        raise
    except sending.NotSent as failed:
        print_answer(done | {"sent": "not yet"}, as_json)
        typer.echo(f"curvote: {failed}", err=True)
        raise typer.Exit(1) from None
    print_answer(done, as_json)
