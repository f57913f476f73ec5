"""The commands on past runs: `curvote runs`, `diff` and `show`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from curvote.flows.output.terminal import (
    Json,
    Pipeline,
    ProjectOption,
    open_project,
    print_json,
)

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
    from curvote.flows.looking_back import list_runs

    rows = list_runs(open_project(project), pipeline, last)
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("Nothing has run yet; `curvote run NAME` does.")
        return
    from curvote.flows.output.tables import print_rows

    print_rows(rows, [c for c in _COLUMNS if not (pipeline and c == "pipeline")])


def diff(  # noqa: PLR0917 - the options of a command are its arguments
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
    from curvote.run.difference import compare_runs

    place = open_project(project)
    comparison = compare_runs(place, a, b)
    drawn_page = None
    if page:
        environment.prepare_environment(place.root)
        from curvote.reporting.side_by_side import draw_comparison

        drawn_page = draw_comparison(place, comparison)
    if as_json:
        print_json(
            comparison.to_document() | {"page": str(drawn_page) if drawn_page else None}
        )
        return
    from curvote.flows.output.differences import print_comparison

    print_comparison(comparison, every=every, page=drawn_page)


def show(
    pipeline: Pipeline,
    overrides: Set = [],  # noqa: B006 - typer copies the default
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Print a pipeline with every default filled in, and what it is for."""
    from curvote.reproduce.lookup import file_of
    from curvote.run.config.parts import describe_choices
    from curvote.run.config.yaml_lines import as_yaml

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
