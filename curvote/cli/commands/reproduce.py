"""The command `curvote reproduce`: published results beside those of curvote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.cli.terminal import (
    EngineName,
    Json,
    ProjectOption,
    Replicates,
    Seed,
    Workers,
    interruptible,
    relative_to_here,
)
from curvote.flows import environment
from curvote.papers.rows import to_json
from curvote.pipeline.config.project import Project, find_project

if TYPE_CHECKING:
    from curvote.papers.reproduction import Reproduction
    from curvote.pipeline.store.records import RunRecord


Name = Annotated[str, typer.Argument(help="A table, a figure: see `curvote list`.")]


def reproduce(
    name: Name,
    replicates: Replicates = None,
    seed: Seed = None,
    engine: EngineName = None,
    workers: Workers = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Run what a published table or figure takes; print paper and curvote together.

    `beyond` compares our protocols with the published ones.
    """
    from curvote.papers.registry import paper_of

    wing = paper_of(name)
    entry = wing.REPRODUCTIONS[name]
    place = find_project(project, starter=True)
    options = {
        "replicates": replicates,
        "seed": seed,
        "engine": engine,
        "workers": workers,
    }
    with interruptible(f"reproduce {name}"):
        records = _run_pipelines(place, entry, options) if entry.pipelines else []
        rows, written = wing.compare(place, name, records)
    if as_json:
        typer.echo(to_json(rows))
        return
    from curvote.cli.tables import print_rows

    typer.echo(f"{entry.heading}\n")
    print_rows(*wing.laid_out(name, rows))
    for line in (
        *wing.agreement(name, rows),
        "\nwritten:",
        *map(relative_to_here, written),
    ):
        typer.echo(line)


def _run_pipelines(
    place: Project, entry: Reproduction, options: dict[str, Any]
) -> list[RunRecord]:
    """Run the pipelines of an entry; formulas alone need no Prefect."""
    environment.prepare_environment(place.root)
    from curvote.cli.run import run_reproduction

    return run_reproduction(place, entry, options)
