"""The commands on the state of a project: `curvote status`, `health`, `doctor`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from curvote.base.errors import UserError
from curvote.cli.terminal import (
    Json,
    ProjectOption,
    interruptible,
    open_project,
    print_json,
    print_json_or_rows,
)
from curvote.flows.environment import prepare_environment
from curvote.pipeline.config.project import Project, find_project

_COLUMNS = ("pipeline", "run", "status", "started", "last_success", "artifacts", "why")
_REFRESH_SECONDS = 2.0


def status(
    verify: Annotated[bool, typer.Option(help="Check every file's content.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it anew until Ctrl-C.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Also those of `reproduce` that ran here.")
    ] = False,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Show the latest run of each pipeline and the state of what it stored.

    Those of `reproduce` are shown with --all only, or where a file of theirs changed.
    """
    place = _project_of(project)
    if watch:
        if as_json:
            raise UserError("--watch is for a terminal; --json prints one document.")
        _watch_status(place, verify, every)
    rows = _status_rows(place, verify, every)
    _print_status(rows, as_json)
    if any(row["altered"] for row in rows):
        raise typer.Exit(1)


def _watch_status(project: Project, verify: bool, every: bool) -> None:
    """Draw the table every two seconds, in its place on a terminal."""
    from curvote.cli.tables import make_console

    screen = make_console()
    with interruptible("status"):
        while True:
            rows = _status_rows(project, verify, every)
            if screen.is_terminal:
                screen.clear()
            _print_status(rows, as_json=False)
            time.sleep(_REFRESH_SECONDS)


def _status_rows(project: Project, verify: bool, every: bool) -> list[dict[str, Any]]:
    from curvote.flows.environment import is_alive
    from curvote.pipeline.run.status import project_status

    rows = project_status(project, content=verify, is_alive=is_alive)
    hidden = set() if every else _reproduction_names(rows)
    return [row for row in rows if row["altered"] or row["pipeline"] not in hidden]


def _reproduction_names(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of pipelines that only a paper's file holds."""
    from curvote.pipeline.config.file import ELSEWHERE

    if not any(row["group"] == ELSEWHERE for row in rows):
        return set()
    from curvote.papers.registry import paper_pipelines

    project_names = {row["pipeline"] for row in rows if row["group"] != ELSEWHERE}
    return paper_pipelines() - project_names


def _print_status(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print rows as JSON, or a table for each group."""
    if as_json:
        print_json_or_rows(rows, _COLUMNS, as_json)
        return
    for group, group_rows in groupby(rows, lambda row: row["group"]):
        typer.echo(group)
        indented = [row | {"pipeline": f"  {row['pipeline']}"} for row in group_rows]
        all_columns = (*_COLUMNS, "description")
        columns = [name for name in all_columns if any(row[name] for row in indented)]
        print_json_or_rows(indented, columns, as_json=False)


def _project_of(start: Path | None) -> Project:
    from curvote.pipeline.store.artifacts import migrate_raw_artifacts

    project = open_project(start)
    migrate_raw_artifacts(project)
    return project


def health(
    max_age: Annotated[
        str | None,
        typer.Option(help="How old a last success may be: 90m, 2h, 7d."),
    ] = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Say whether `curvote serve` does its work; exit 1 where it does not."""
    from curvote.flows.serving.health import check_health as look

    rows = look(open_project(project), None if max_age is None else _parse_age(max_age))
    print_json_or_rows(rows, ("check", "status", "found", "fix"), as_json)
    if any(row["status"] != "ok" for row in rows):
        raise typer.Exit(1)


def _parse_age(text: str) -> timedelta:
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    number, unit = text[:-1], text[-1:]
    digits = number.isdecimal() and len(number) <= 6
    if unit not in units or not digits or not int(number):
        raise UserError(f"--max-age {text!r}: write it as 90m, 2h or 7d.")
    return timedelta(**{units[unit]: int(number)})


Fix = Annotated[bool, typer.Option("--fix", help="Mend what can lose nothing.")]


def doctor(
    fix: Fix = False, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Look at versions, disks, databases, ledger and store; exit 1 unless all is ok."""
    from curvote.cli.doctor import repair_project, run_checks

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
