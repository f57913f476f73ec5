"""The command ``curvote doctor``: is everything that a run needs in order."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from curvote.errors import UserError
from curvote.run.config.file import PipelinesFile
from curvote.run.project import Project, find_project
from flows.environment import prepare
from flows.examining import databases, machine, mending, released, stored, versions
from flows.examining.finding import Check, Finding
from flows.terminal import Json, ProjectOption, say_json

Fix = Annotated[bool, typer.Option("--fix", help="Mend what can lose nothing.")]


def pipelines(project: Project) -> Iterator[Finding]:
    """Read the configuration of every pipeline."""
    file = PipelinesFile(project)
    for name in file.names():
        file.configured(name)
    yield Finding("pipelines", "ok", f"{len(file.names())} can be read")


CHECKS: dict[str, Check] = {
    "versions": versions.versions,
    "pipelines": pipelines,
    "space": machine.space,
    "file system": machine.file_systems,
    "clock": machine.clock,
    "stale runs": stored.runs,
    "run records": stored.records,
    "locks": stored.locks,
    "artifacts": stored.artifacts,
    "ledger": released.ledger,
    "reservations": released.reservations,
    "witness": released.witness,
    "intake": released.intake,
    "databases": databases.databases,
    "MLflow runs": mending.tracked,
}


def examined(project: Project) -> list[Finding]:
    """Do every check; one that cannot be done is a finding itself."""
    return [each for name in CHECKS for each in _done(name, project)]


def _done(name: str, project: Project) -> list[Finding]:
    try:
        return list(CHECKS[name](project))
    except UserError as error:
        return [Finding(name, "failed", str(error), "as it says")]
    except (OSError, sqlite3.Error, ValueError, KeyError, TypeError) as error:
        words = f"could not be looked at: {type(error).__name__}: {error}"
        return [Finding(name, "failed", words, "put what it names back from a backup")]


def doctor(
    fix: Fix = False, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Look at versions, disks, databases, ledger and store; exit 1 unless all is ok."""
    place = find_project(project)
    prepare(place.root)
    if fix:
        for line in mending.mend(place):
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
