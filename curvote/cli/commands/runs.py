"""The commands on runs: `curvote scores`, `report`, `runs`, `diff` and `show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from curvote.base.errors import UserError
from curvote.cli.terminal import Json, Pipeline, ProjectOption, open_project, print_json
from curvote.flows import environment
from curvote.pipeline.config.project import Project

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
    from curvote.pipeline.run.results import mean_scores
    from curvote.pipeline.run.run_object import require_scores
    from curvote.pipeline.store.records import completed_run

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
    from curvote.cli.tables import print_scores

    print_scores(record, rows, metric)


def report(
    pipeline: Pipeline, run_id: RunId = None, project: ProjectOption = None
) -> None:
    """Draw the report of the latest completed run, or of one, and print its path.

    An earlier run has a page of its own beside that of the latest.
    """
    place = _project_of(project)
    environment.prepare_environment(place.root)
    from curvote.pipeline.store.records import completed_run
    from curvote.report.page import draw_report as draw

    typer.echo(str(draw(place, completed_run(place, pipeline, run_id))))


def _project_of(start: Path | None) -> Project:
    from curvote.pipeline.store.artifacts import migrate_raw_artifacts

    project = open_project(start)
    migrate_raw_artifacts(project)
    return project


_COLUMNS = ("run", "pipeline", "started", "status", "main", "changed")
Set = Annotated[list[str], typer.Option("--set", help="Override a setting: a.b=v.")]
RunName = Annotated[
    str, typer.Argument(help="A run's id, NAME for its latest, NAME~1 for one before.")
]


def runs(
    pipeline: Annotated[str | None, typer.Argument(help="Only of this one.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many, the latest.")] = 20,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """List runs: when, how they ended, their main number, what differs from before."""
    from curvote.cli.run_list import list_runs

    rows = list_runs(open_project(project), pipeline, last)
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("Nothing has run yet; `curvote run NAME` does.")
        return
    from curvote.cli.tables import print_rows

    print_rows(rows, [c for c in _COLUMNS if not (pipeline and c == "pipeline")])


def diff(
    a: RunName,
    b: RunName,
    every: Annotated[
        bool, typer.Option("--all", help="Also scores and keys that did not change.")
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Draw a page: their figures side by side.")
    ] = False,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Say what differs between two runs: settings, keys with reasons, and scores."""
    from curvote.flows import environment
    from curvote.pipeline.run.comparison import compare_runs

    place = open_project(project)
    comparison = compare_runs(place, a, b)
    drawn_page = None
    if page:
        environment.prepare_environment(place.root)
        from curvote.report.page import draw_comparison

        drawn_page = draw_comparison(place, comparison)
    if as_json:
        print_json(
            comparison.to_document() | {"page": str(drawn_page) if drawn_page else None}
        )
        return
    from curvote.cli.differences import print_comparison

    print_comparison(comparison, every=every, page=drawn_page)


def show(
    pipeline: Pipeline,
    overrides: Set = [],  # noqa: B006 - typer copies the default
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Print a pipeline with every default filled in, and what it is for."""
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.settings import describe_choices
    from curvote.pipeline.config.yaml_document import as_yaml

    file = file_of(open_project(project, starter=True), pipeline)
    values = file.configure_pipeline(pipeline, overrides).values()
    if as_json:
        print_json(values)
        return
    stated_values: dict[str, Any] = {k: v for k, v in values.items() if v is not None}
    for line in filter(
        None, (stated_values.pop("description", None), *describe_choices(values))
    ):
        typer.echo(f"# {line}")
    text = as_yaml({pipeline: stated_values}, brief=True)
    typer.echo(text, nl=False)
