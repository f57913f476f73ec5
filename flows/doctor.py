"""The command ``curvote doctor``: is everything that a run needs in order."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from curvote.flows.environment import prepare
from curvote.flows.output.terminal import Json, ProjectOption, say_json
from curvote.run.project import find_project

Fix = Annotated[bool, typer.Option("--fix", help="Mend what can lose nothing.")]


def doctor(
    fix: Fix = False, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Look at versions, disks, databases, ledger and store; exit 1 unless all is ok."""
    from curvote.flows.examining.checks import examined
    from curvote.flows.examining.mending import mend

    place = find_project(project)
    prepare(place.root)
    if fix:
        for line in mend(place):
            print(line, file=sys.stderr)
    found = examined(place)
    if as_json:
        say_json([asdict(each) for each in found])
    else:
        for each in found:
            typer.echo(f"{each.status:8} {each.check}: {each.found}")
            if each.fix:
                typer.echo(f"{'':8} -> {each.fix}")
    if any(each.status != "ok" for each in found):
        raise typer.Exit(1)
