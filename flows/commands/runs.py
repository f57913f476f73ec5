"""The commands that look back: `curvote runs`, `diff` and `show`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from curvote.flows.output.terminal import (
    Json,
    Pipeline,
    ProjectOption,
    project_of,
    say_json,
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
    from curvote.flows.looking_back import listed

    rows = listed(project_of(project), pipeline, last)
    if as_json:
        say_json(rows)
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
    from curvote.run.difference import difference

    place = project_of(project)
    found = difference(place, a, b)
    drawn = None
    if page:
        environment.prepare(place.root)
        from curvote.reporting.side_by_side import draw

        drawn = draw(place, found)
    if as_json:
        say_json(found.document() | {"page": str(drawn) if drawn else None})
        return
    from curvote.flows.output.differences import print_difference

    print_difference(found, every=every, page=drawn)


def show(
    pipeline: Pipeline,
    overrides: Set = [],  # noqa: B006 - typer copies the default
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Print a pipeline with every default filled in, and what it is for."""
    from curvote.reproduce.lookup import file_of
    from curvote.run.config.parts import reasons
    from curvote.run.config.yaml_lines import as_yaml

    file = file_of(project_of(project, starter=True), pipeline)
    values = file.configured(pipeline, overrides).values()
    if as_json:
        say_json(values)
        return
    told: dict[str, Any] = {k: v for k, v in values.items() if v is not None}
    for line in filter(None, (told.pop("description", None), *reasons(values))):
        typer.echo(f"# {line}")
    text = as_yaml({pipeline: told}, brief=True)
    typer.echo(text, nl=False)
