"""Project commands: `curvote init`, `list`, `check` and `gc`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from curvote.errors import UserError
from curvote.flows.output.terminal import relative_to_here

Folder = Annotated[Path, typer.Argument(help="Where the project is to be.")]
TableFile = Annotated[
    Path | None, typer.Option("--table", help="Your CSV or Parquet: one record a row.")
]
CurvesFile = Annotated[
    Path | None, typer.Option("--curves", help="The same: one measurement a row.")
]


def init(
    folder: Folder = Path(), table: TableFile = None, curves: CurvesFile = None
) -> None:
    """Write a pipelines.yaml with the columns of a file; bounds are yours to state.

    Nothing that is called public is taken from the file, and nothing is overwritten.
    """
    from curvote.datasets.own.open_places import TO_STATE
    from curvote.run.beginning import begin_project

    if table and curves:
        raise UserError("--table or --curves, not both: a pipeline reads one file.")
    path, name = begin_project(folder, "table" if table else "curves", table or curves)
    typer.echo(f"written: {relative_to_here(path.resolve())}")
    n_placeholders = path.read_text(encoding="utf-8").count(TO_STATE)
    if n_placeholders:
        typer.echo(
            f"Write what you know in its {n_placeholders} places marked {TO_STATE};"
            " then:"
        )
    there = "" if folder.resolve() == Path.cwd() else f" --project {folder}"
    for command in ("check", "run", "report") if n_placeholders else ("run", "report"):
        typer.echo(f"  curvote {command} {name}{there}")
