"""The command that says what there is: `curvote list`."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any

import typer

from curvote.datasets.registry import DATASETS
from curvote.flows.output.terminal import Json, ProjectOption, project_of, say_json
from curvote.mechanisms.registry import MECHANISMS

Schema = Annotated[
    bool, typer.Option("--schema", help="Print the JSON Schema of pipelines.yaml.")
]
_COLUMNS = ("pipeline", "protocols", "source", "description")


def list_(
    every: Annotated[
        bool, typer.Option("--all", help="Also what `reproduce` takes.")
    ] = False,
    as_json: Json = False,
    schema: Schema = False,
    project: ProjectOption = None,
) -> None:
    """List pipelines by groups, sources, mechanisms and learners."""
    if schema:
        from curvote.run.config.editor import editor_schema

        say_json(editor_schema())
        return
    from curvote.chain.lookup import named
    from curvote.run.config.about import pipelines
    from curvote.run.config.file import PipelinesFile

    file = PipelinesFile(project_of(project, starter=True))
    about = [each.row() for each in pipelines(file)]
    known: dict[str, list[str]] = {
        "sources": list(DATASETS),
        "mechanisms": list(MECHANISMS),
        "learners": named("learner.name"),
    }
    if every or as_json:
        from curvote.reproduce.lookup import reproductions

        known["reproduce"] = list(reproductions())
    if as_json:
        say_json({"pipelines": file.names(), "about": about} | known)
        return
    _print(about, known)


def _print(about: list[dict[str, Any]], known: dict[str, list[str]]) -> None:
    from curvote.flows.output.tables import print_rows

    for group, own in groupby(about, lambda each: each["group"]):
        typer.echo(f"{group}")
        rows = [each | {"pipeline": f"  {each['name']}"} for each in own]
        print_rows(rows, _COLUMNS)
        typer.echo()
    for kind, names in known.items():
        typer.echo(f"{kind:11} {', '.join(names)}")
    if "reproduce" not in known:
        typer.echo("`--all` also lists what `curvote reproduce` takes.")
