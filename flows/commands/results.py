"""The commands that tell what a run found: `curvote scores` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from curvote.errors import UserError
from curvote.flows import environment
from curvote.flows.output.terminal import (
    Json,
    Pipeline,
    ProjectOption,
    project_of,
    say_json,
)
from curvote.run.project import Project

RunId = Annotated[str | None, typer.Option("--run", help="A run's id, or NAME~1.")]


def scores(
    pipeline: Pipeline,
    run_id: RunId = None,
    metric: Annotated[
        str | None, typer.Option(help="One that stands beside others, by its name.")
    ] = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Print the scores of a pipeline's latest completed run, or of another one."""
    from curvote.run.history import completed
    from curvote.run.loaded import need_scores
    from curvote.run.summary import summary

    place = _place(project)
    record = completed(place, pipeline, run_id)
    if run_id is not None:
        need_scores(place, record)
    rows = summary(place, record)
    if not rows:
        raise UserError(
            f"{pipeline} is in production: no true error is known. `curvote report"
            f" {pipeline}` shows what is."
        )
    if as_json:
        say_json(rows)
        return
    from curvote.flows.output.tables import print_scores

    print_scores(record, rows, metric)


def report(
    pipeline: Pipeline, run_id: RunId = None, project: ProjectOption = None
) -> None:
    """Draw the report of the latest completed run, or of one, and print its path.

    An earlier run has a page of its own beside that of the latest.
    """
    place = _place(project)
    environment.prepare(place.root)
    from curvote.reporting.report import report as draw
    from curvote.run.history import completed

    typer.echo(str(draw(place, completed(place, pipeline, run_id))))


def _place(start: Path | None) -> Project:
    from curvote.run.store.moving import move_raw

    found = project_of(start)
    move_raw(found)
    return found
