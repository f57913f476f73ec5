"""The command `curvote ledger`: show, check, export, copy and restore a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from curvote.errors import UserError
from curvote.flows.output.terminal import ProjectOption
from curvote.run.project import find_project

LedgerOption = Annotated[
    Path | None,
    typer.Option("--ledger", help="A ledger of its own (default: the project's)."),
]


def backup(
    file: Annotated[Path, typer.Argument(help="The copy; an earlier one is replaced.")],
    project: ProjectOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Copy the ledger, checked, while others may write to it.

    FILE appears whole or not at all, for its owner alone. Keep it on another disk.
    """
    from curvote.client import ledger_backup

    path = ledger or find_project(project).ledger
    if not path.exists():
        raise UserError(f"{path}: there is no ledger yet that could be copied.")
    sequence, _ = ledger_backup.back_up_ledger(path, file)
    typer.echo(f"{file}: {sequence} entries, sound")


def restore(
    file: Annotated[Path, typer.Argument(help="A backup of this project's ledger.")],
    project: ProjectOption = None,
) -> None:
    """Put a backup in the ledger's place; nothing that it lacks is forgotten.

    What store, records, witness and the ledger in place tell of is entered as spent.
    The ledger in place is set aside, never deleted.
    """
    from curvote.run.release import restoring

    place = find_project(project)
    done = restoring.restore_ledger(place, file)
    for release in done.entered:
        population = (
            f" of population {release.population}" if release.population else ""
        )
        whom = f"spent by everybody{population}"
        if release.clients is not None:
            whom = f"spent by {len(release.clients)} clients{population}"
        typer.echo(f"{whom}: release {release.release} ({release.where})")
    typer.echo(f"{place.ledger}: restored, {len(done.entered)} releases were missing")
    if done.aside:
        typer.echo(f"the ledger that was there: {done.aside}")
