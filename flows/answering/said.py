"""What the commands of `curvote client` say when they are done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from curvote.client.words import said
from curvote.flows.output.terminal import say_json

if TYPE_CHECKING:
    from curvote.client.ledger import Ledger


def say(done: dict[str, Any], as_json: bool) -> None:
    """Say what happened to one message."""
    if as_json:
        say_json(done)
        return
    message, budget = done["message"], said(done["epsilon"], done["delta"])
    about = f" about {done['records']} records" if "records" in done else ""
    typer.echo(
        f"released one {message}{about}, {budget}"
        if done["new"]
        else f"this {message} was released before: nothing was drawn, nothing spent"
    )
    typer.echo(f"envelope  {done['envelope']}\nSHA-256   {done['sha256']}")
    if "sent" in done:
        typer.echo(f"sent      {done['sent']} ({done['server_address']})")
    _say_left(done)


def say_each(done: dict[str, Any], as_json: bool) -> None:
    """Say what happened to the messages of a table."""
    if as_json:
        say_json(done)
        return
    budget = said(done["epsilon"], done["delta"])
    if done["new"]:
        typer.echo(f"released {done['records']} {done['message']}s, each {budget}")
    if done["before"]:
        typer.echo(
            f"{done['before']} {done['message']}s were released before: nothing was"
            " drawn, nothing spent"
        )
    typer.echo(f"envelopes {done['outbox']}")
    _say_left(done)


def account(ledger: Ledger) -> list[str]:
    """Return what a ledger says of its owner, a line each."""
    from curvote.client.form import lines, settled
    from curvote.client.standing import POPULATION, Standing

    standing, stated = Standing.of(ledger), settled(ledger)
    spent = ledger.worst(POPULATION).floats()
    cap = said(standing.cap.epsilon, standing.cap.delta)
    each = ", the most of any record" if standing.records else ""
    return [
        f"ledger  {ledger.path}",
        f"name    {standing.name}",
        f"cap     {cap}{'' if standing.chosen else ' (the house has it; not set yet)'}",
        f"spent   {said(*spent)}{each}",
        f"server  {standing.server or 'the first whose task you answer'}",
        *(lines(stated) if stated else ["form    none stated (a table needs one)"]),
    ]


def _say_left(done: dict[str, Any]) -> None:
    left, cap = (said(done[k], done[f"{k}_delta"]) for k in ("left", "cap"))
    typer.echo(f"left      {left} of your cap of {cap}")
