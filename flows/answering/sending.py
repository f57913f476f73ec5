"""Sending of envelopes (``--send``): the released envelope goes to its server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from curvote.client import sending
from curvote.errors import UserError
from curvote.flows.answering.said import print_answer


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
