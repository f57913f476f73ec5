"""The commands that say how things stand: `curvote status` and `curvote health`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from curvote.errors import UserError
from curvote.flows.output.terminal import (
    Json,
    ProjectOption,
    interruptible,
    project_of,
    say_rows,
)
from curvote.run.project import Project

_COLUMNS = ("pipeline", "run", "status", "started", "last_success", "artifacts", "why")
_EVERY = 2.0


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
    place = _project(project)
    if watch:
        if as_json:
            raise UserError("--watch is for a terminal; --json prints one document.")
        _watch(place, verify, every)
    rows = _rows(place, verify, every)
    _say(rows, as_json)
    if any(row["altered"] for row in rows):
        raise typer.Exit(1)


def _watch(project: Project, verify: bool, every: bool) -> None:
    """Draw the table anew, in its place on a terminal, every two seconds."""
    from curvote.flows.output.tables import console

    screen = console()
    with interruptible("status"):
        while True:
            rows = _rows(project, verify, every)
            if screen.is_terminal:
                screen.clear()
            _say(rows, as_json=False)
            time.sleep(_EVERY)


def _rows(project: Project, verify: bool, every: bool) -> list[dict[str, Any]]:
    from curvote.flows.environment import is_alive
    from curvote.run.status import overview

    found = overview(project, content=verify, is_alive=is_alive)
    hidden = set() if every else _reproductions(found)
    return [row for row in found if row["altered"] or row["pipeline"] not in hidden]


def _reproductions(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return which of these pipelines no file of the project names, but a wing's."""
    from curvote.run.config.about import ELSEWHERE

    if not any(row["group"] == ELSEWHERE for row in rows):
        return set()
    from curvote.reproduce.lookup import pipelines_of_wings

    own = {row["pipeline"] for row in rows if row["group"] != ELSEWHERE}
    return pipelines_of_wings() - own


def _say(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print rows as JSON, or a table a group; descriptions stand in `list`."""
    if as_json:
        say_rows(rows, _COLUMNS, as_json)
        return
    for group, own in groupby(rows, lambda row: row["group"]):
        typer.echo(group)
        shown = [row | {"pipeline": f"  {row['pipeline']}"} for row in own]
        every = (*_COLUMNS, "description")
        told = [name for name in every if any(row[name] for row in shown)]
        say_rows(shown, told, as_json=False)


def _project(start: Path | None) -> Project:
    from curvote.run.store.moving import move_raw

    found = project_of(start)
    move_raw(found)
    return found


def health(
    max_age: Annotated[
        str | None,
        typer.Option(help="How old a last success may be: 90m, 2h, 7d."),
    ] = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Say whether `curvote serve` does its work; exit 1 where it does not."""
    from curvote.flows.health import health as look

    rows = look(project_of(project), None if max_age is None else _span(max_age))
    say_rows(rows, ("check", "status", "found", "fix"), as_json)
    if any(row["status"] != "ok" for row in rows):
        raise typer.Exit(1)


def _span(text: str) -> timedelta:
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    number, unit = text[:-1], text[-1:]
    digits = number.isdecimal() and len(number) <= 6
    if unit not in units or not digits or not int(number):
        raise UserError(f"--max-age {text!r}: write it as 90m, 2h or 7d.")
    return timedelta(**{units[unit]: int(number)})
