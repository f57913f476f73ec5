"""The command ``curvote doctor``: checks of everything that a run needs."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from curvote.flows.environment import prepare_environment
from curvote.flows.output.terminal import Json, ProjectOption, print_json
from curvote.run.project import find_project

Fix = Annotated[bool, typer.Option("--fix", help="Mend what can lose nothing.")]


def doctor(
    fix: Fix = False, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Look at versions, disks, databases, ledger and store; exit 1 unless all is ok."""
    from curvote.flows.examining.checks import run_checks
    from curvote.flows.examining.mending import repair_project

    place = find_project(project)
    prepare_environment(place.root)
    if fix:
        for line in repair_project(place):
            print(line, file=sys.stderr)
    findings = run_checks(place)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{finding.status:8} {finding.check}: {finding.found}")
            if finding.fix:
                typer.echo(f"{'':8} -> {finding.fix}")
    if any(finding.status != "ok" for finding in findings):
        raise typer.Exit(1)
