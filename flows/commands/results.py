"""The commands on runs: `curvote scores`, `report`, `runs`, `diff` and `show`."""

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
    open_project,
    print_json,
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
    from curvote.run.history import completed_run
    from curvote.run.loaded import require_scores
    from curvote.run.summary import mean_scores

    place = _project_of(project)
    record = completed_run(place, pipeline, run_id)
    if run_id is not None:
        require_scores(place, record)
    rows = mean_scores(place, record)
    if not rows:
        raise UserError(
            f"{pipeline} is in production: no true error is known. `curvote report"
            f" {pipeline}` shows what is."
        )
    if as_json:
        print_json(rows)
        return
    from curvote.flows.output.tables import print_scores

    print_scores(record, rows, metric)


def report(
    pipeline: Pipeline, run_id: RunId = None, project: ProjectOption = None
) -> None:
    """Draw the report of the latest completed run, or of one, and print its path.

    An earlier run has a page of its own beside that of the latest.
    """
    place = _project_of(project)
    environment.prepare_environment(place.root)
    from curvote.reporting.report import draw_report as draw
    from curvote.run.history import completed_run

    typer.echo(str(draw(place, completed_run(place, pipeline, run_id))))


def _project_of(start: Path | None) -> Project:
    from curvote.run.store.moving import migrate_raw_artifacts

    project = open_project(start)
    migrate_raw_artifacts(project)
    return project
