"""The command `curvote list`: pipelines, sources, mechanisms and learners."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any

import typer

from curvote.datasets.registry import DATASETS
from curvote.flows.output.terminal import Json, ProjectOption, open_project, print_json
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

        print_json(editor_schema())
        return
    from curvote.chain.lookup import names_at_key
    from curvote.run.config.about import list_pipelines
    from curvote.run.config.file import PipelinesFile

    file = PipelinesFile(open_project(project, starter=True))
    about = [overview.row() for overview in list_pipelines(file)]
    names: dict[str, list[str]] = {
        "sources": list(DATASETS),
        "mechanisms": list(MECHANISMS),
        "learners": names_at_key("learner.name"),
    }
    if every or as_json:
        from curvote.reproduce.lookup import reproductions

        names["reproduce"] = list(reproductions())
    if as_json:
        print_json({"pipelines": file.names(), "about": about} | names)
        return
    _print_lists(about, names)


def _print_lists(
    about: list[dict[str, Any]], names_by_kind: dict[str, list[str]]
) -> None:
    from curvote.flows.output.tables import print_rows

    for group, group_rows in groupby(about, lambda row: row["group"]):
        typer.echo(f"{group}")
        rows = [row | {"pipeline": f"  {row['name']}"} for row in group_rows]
        print_rows(rows, _COLUMNS)
        typer.echo()
    for kind, names in names_by_kind.items():
        typer.echo(f"{kind:11} {', '.join(names)}")
    if "reproduce" not in names_by_kind:
        typer.echo("`--all` also lists what `curvote reproduce` takes.")
