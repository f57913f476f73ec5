"""What `--send` does: the envelope that was released goes to its server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from curvote.client import sending
from curvote.errors import UserError
from curvote.flows.answering.said import say


def answer(make: Callable[[], dict[str, Any]], send: str | None, as_json: bool) -> None:
    """Release what ``make`` releases, send it if ``send`` names a service, say both.

    One that was released before is sent from the outbox, and nothing is drawn. What was
    released is said whatever becomes of the sending.
    """
    if send is None:
        say(make(), as_json)
        return
    sending.address(send)  # refused before anything is drawn
    done = make()
    done["server_address"] = send
    try:
        done["sent"] = sending.send(send, Path(done["envelope"]).read_bytes())
    except UserError:
        say(done | {"sent": "refused"}, as_json)
        raise
    except sending.NotSent as failed:
        say(done | {"sent": "not yet"}, as_json)
        typer.echo(f"curvote: {failed}", err=True)
        raise typer.Exit(1) from None
    say(done, as_json)
