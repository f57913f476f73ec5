"""The command `curvote intake`: take envelopes in, show and close rounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curvote.base.errors import UserError
from curvote.cli import terminal
from curvote.pipeline.config.project import Project, find_project

app = typer.Typer(
    name="intake",
    help="Collect envelopes, from files or over HTTP; show and close rounds.",
    no_args_is_help=True,
)

COLUMNS = ("round", "asks", "issued", "accepted", "needed", "state")


@app.command()
def take(
    pipeline: terminal.Pipeline,
    inbox: Annotated[
        Path | None,
        typer.Option("--inbox", help="Folder to read (default: data/inbox/PIPELINE)."),
    ] = None,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Accept the envelopes in a folder; move aside what is refused, with the reason."""
    from curvote.intake.box import Intake
    from curvote.intake.inbox import accept_inbox
    from curvote.messages.message import parse_messages

    place = _project_with(project, pipeline)
    folder = place.inbox(pipeline) if inbox is None else inbox
    if not folder.is_dir():
        raise UserError(
            f"there is no folder {folder} to take envelopes from; name one by --inbox."
        )
    with Intake(place.intake) as intake:
        quarantine = place.quarantine(pipeline)
        outcome = accept_inbox(intake, folder, quarantine, parse_messages)
    refused, files_left = outcome.refused, outcome.files_left
    if as_json:
        terminal.print_json(
            {"accepted": outcome.accepted, "refused": refused, "left": files_left}
        )
        return
    typer.echo(f"accepted {outcome.accepted}, refused {refused.total()}")
    _print_counts(refused)
    if refused:
        typer.echo(f"refused ones, each with its reason: {quarantine}")
    if files_left:
        typer.echo(f"not taken yet {files_left.total()}")
        _print_counts(files_left)


@app.command()
def serve(
    pipeline: terminal.Pipeline,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port (0: any that is free).")
    ] = 8090,
    workers: Annotated[int, typer.Option(min=1, help="Processes that accept.")] = 1,
    project: terminal.ProjectOption = None,
) -> None:
    """Accept envelopes over HTTP until ended; for HTTPS put a proxy in front."""
    from curvote.flows.intake.processes import serve_intake as run

    run(_project_with(project, pipeline), pipeline, host, port, workers)


@app.command()
def key(project: terminal.ProjectOption = None) -> None:
    """Show the fingerprint of the server's key, by which clients know it."""
    from curvote.pipeline.release.publication import server_key

    typer.echo(server_key(find_project(project)).fingerprint)


@app.command()
def close(pipeline: terminal.Pipeline, project: terminal.ProjectOption = None) -> None:
    """End the open round: accept no more, go on with the envelopes that came."""
    from curvote.pipeline.config.file import PipelinesFile
    from curvote.pipeline.release.publication import close_round

    place = _project_with(project, pipeline)
    closed_round = close_round(place, PipelinesFile(place).configure_pipeline(pipeline))
    typer.echo(
        f"closed {closed_round.id}: {closed_round.accepted} of {closed_round.needed}"
        f" {closed_round.asks}s"
    )
    typer.echo(f"digest of all accepted: {closed_round.accepted_digest}")


@app.command()
def merge(
    pipeline: terminal.Pipeline,
    file: Annotated[
        Path,
        typer.Argument(help="An intake that another machine filled.", exists=True),
    ],
    project: terminal.ProjectOption = None,
) -> None:
    """Add what another machine's intake took in; rounds of PIPELINE end there for good.

    That intake begins as a copy of this one, made when the round opened. An invitation
    that both counted is refused and named, and then nothing is added. The same file a
    second time adds nothing.
    """
    from curvote.intake.box import Intake

    with Intake(_project_with(project, pipeline).intake) as intake:
        for round_id, count in intake.merge(file, pipeline).items():
            typer.echo(f"{round_id}: added {count}" if count else f"{round_id}: known")


@app.command()
def proofs(
    pipeline: terminal.Pipeline,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the leaves of each closed round.")
    ] = Path("leaves"),
    project: terminal.ProjectOption = None,
) -> None:
    """Write the leaves of closed rounds, for everybody who holds a receipt.

    They say nothing of who took part; `curvote client verify --leaves` reads them.
    """
    from curvote.intake.box import Intake
    from curvote.pipeline.store.artifacts import write_text
    from curvote.wire.merkle import MerkleTree, leaves_document
    from curvote.wire.strict_json import canonical_json

    with Intake(_project_with(project, pipeline).intake) as intake:
        closed = [r for r in intake.rounds(pipeline) if r.closed and r.receipts]
        if not closed:
            raise UserError(f"{pipeline} has no closed round that gave receipts.")
        out.mkdir(parents=True, exist_ok=True)
        for round_ in closed:
            tree = MerkleTree(intake.leaves(round_.id))
            path = out / f"{round_.asks}-{round_.task.number}-{round_.digest[:12]}.json"
            text = canonical_json(leaves_document(tree, round_.digest)).decode()
            write_text(path, f"{text}\n")
            typer.echo(f"{path}: root {tree.root.hex()} of {len(tree.leaves):,}")


@app.command()
def invitations(
    tree: Annotated[
        Path,
        typer.Argument(help="The tree of a round's invitations.", exists=True),
    ],
    start: Annotated[int, typer.Option(min=0, help="The first place.")] = 0,
    count: Annotated[
        int | None, typer.Option(min=1, help="How many (default: all).")
    ] = None,
    as_tree: Annotated[
        bool,
        typer.Option("--tree", help="Write a smaller tree, which makes no other ones."),
    ] = False,
) -> None:
    """Write invitations of a tree as JSON Lines, for one client each."""
    import json

    from curvote.wire.key_tree import InvitationTree
    from curvote.wire.strict_json import canonical_json, parse_json

    every = InvitationTree.from_json(parse_json(tree.read_bytes(), 1 << 20))
    number = every.start + every.count - start if count is None else count
    part = every.part(start, number)
    if as_tree:
        typer.echo(canonical_json(part.to_json()).decode())
        return
    for invitation in part:
        typer.echo(json.dumps(invitation.to_json()))


@app.command()
def show(
    pipeline: terminal.Pipeline,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Show each round: how many are invited, accepted and needed."""
    from curvote.intake.box import Intake
    from curvote.messages.message import message_of

    place = _project_with(project, pipeline)
    with Intake(place.intake) as intake:
        rounds = intake.rounds(pipeline)
    rows: list[dict[str, Any]] = []
    for round_ in rounds:
        sender = message_of(round_.task).sender(round_.task)
        state = "complete" if round_.complete else "open"
        if round_.closed:
            state = "closed"
        elif round_.folded:  # an open one may have folded messages in already
            state = "complete, open"
        row: dict[str, Any] = {"server": sender} if sender is not None else {}
        row |= {"round": round_.id, "asks": round_.asks, "issued": round_.issued}
        row |= {"accepted": round_.accepted, "needed": round_.needed, "state": state}
        rows.append(row)
    named = any("server" in row for row in rows)
    terminal.print_json_or_rows(
        rows, ("server", *COLUMNS) if named else COLUMNS, as_json
    )


def _print_counts(counts: Mapping[str, int]) -> None:
    for reason, count in sorted(counts.items()):
        typer.echo(f"  {reason}: {count}")


def _project_with(start: Path | None, pipeline: str) -> Project:
    """Return the project; a pipeline that it does not have is a UserError."""
    from curvote.base import validate
    from curvote.pipeline.config.file import PipelinesFile

    place = find_project(start)
    validate.one_of(PipelinesFile(place).names(), pipeline=pipeline)
    return place
