"""The command `curvote intake`: envelopes come in, rounds fill and are closed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.errors import UserError
from curvote.flows.output.terminal import (
    Json,
    Pipeline,
    ProjectOption,
    say_json,
    say_rows,
)
from curvote.run.project import Project, find_project

if TYPE_CHECKING:
    from curvote.server.inbox import Taken
    from curvote.server.rounds import Round

app = typer.Typer(
    name="intake",
    help="Take envelopes in, from files or over HTTP, show and close rounds.",
    no_args_is_help=True,
)

Inbox = Annotated[
    Path | None,
    typer.Option("--inbox", help="Folder of envelopes (default: data/inbox/P)."),
]
COLUMNS = ("round", "asks", "issued", "accepted", "needed", "state")


@app.command()
def take(
    pipeline: Pipeline,
    inbox: Inbox = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Accept the envelopes of the inbox; quarantine what is refused, with reasons."""
    from curvote.protocols.checking import check_all
    from curvote.server.inbox import take_all
    from curvote.server.intake import Intake

    place = _project(project, pipeline)
    folder = place.inbox(pipeline) if inbox is None else inbox
    if not folder.is_dir():
        raise UserError(f"no folder {folder}; envelopes are looked for in there.")
    with Intake(place.intake) as intake:
        taken = take_all(intake, folder, place.quarantine(pipeline), check_all)
    _say_taken(taken, place.quarantine(pipeline), as_json)


@app.command()
def serve(
    pipeline: Pipeline,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="0: any free one.")
    ] = 8090,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    project: ProjectOption = None,
) -> None:
    """Accept envelopes over HTTP until SIGTERM; a proxy in front ends TLS."""
    from curvote.flows.intake.serving import serve as run

    run(_project(project, pipeline), pipeline, host, port, workers)


@app.command()
def key(project: ProjectOption = None) -> None:
    """Show the fingerprint of the key that signs the tasks, for clients to pin."""
    from curvote.run.release.publishing import server_key

    typer.echo(server_key(find_project(project)).fingerprint)


@app.command()
def close(pipeline: Pipeline, project: ProjectOption = None) -> None:
    """Close the pipeline's open round: go on with the envelopes that are in."""
    from curvote.run.config.file import PipelinesFile
    from curvote.run.release.publishing import close_early

    place = _project(project, pipeline)
    found = close_early(place, PipelinesFile(place).configured(pipeline))
    typer.echo(f"closed {found.id}: {found.accepted} of {found.needed} {found.asks}s")
    typer.echo(f"accepted set {found.accepted_digest}")


@app.command()
def show(
    pipeline: Pipeline, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Show the pipeline's rounds: invited, accepted and needed clients."""
    from curvote.server.intake import Intake

    place = _project(project, pipeline)
    with Intake(place.intake) as intake:
        rows = [_row(each) for each in intake.rounds(pipeline)]
    named = any("server" in row for row in rows)
    say_rows(rows, ("server", *COLUMNS) if named else COLUMNS, as_json)


def _row(found: Round) -> dict[str, Any]:
    from curvote.protocols.message import message_of

    sender = message_of(found.task).sender(found.task)
    return ({} if sender is None else {"server": sender}) | {
        "round": found.id,
        "asks": found.asks,
        "issued": found.issued,
        "accepted": found.accepted,
        "needed": found.needed,
        "state": _state(found),
    }


def _state(found: Round) -> str:
    """Return a round's state; one that stays open has folded some messages in."""
    if found.closed:
        return "closed"
    if found.folded:
        return "complete, open"
    return "complete" if found.complete else "open"


def _say_taken(taken: Taken, quarantine: Path, as_json: bool) -> None:
    refused, left = taken.refused, taken.left
    if as_json:
        counts = {"accepted": taken.accepted, "refused": refused, "left": left}
        say_json(counts)
        return
    typer.echo(f"accepted {taken.accepted}, refused {refused.total()}")
    _say_counts(refused)
    if refused:
        typer.echo(f"reasons in {quarantine}")
    if left:
        typer.echo(f"left in the inbox {left.total()}")
        _say_counts(left)


def _say_counts(counts: Mapping[str, int]) -> None:
    for reason, count in sorted(counts.items()):
        typer.echo(f"  {reason}: {count}")


def _project(start: Path | None, pipeline: str) -> Project:
    """Return the project; a pipeline that it does not have is a UserError."""
    from curvote import validate
    from curvote.run.config.file import PipelinesFile

    place = find_project(start)
    validate.one_of(PipelinesFile(place).names(), pipeline=pipeline)
    return place
