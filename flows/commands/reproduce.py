"""The command `curvote reproduce`: published results beside those of curvote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.flows import environment
from curvote.flows.output.terminal import (
    EngineName,
    Json,
    ProjectOption,
    Replicates,
    Seed,
    Workers,
    interruptible,
    relative_to_here,
)
from curvote.reproduce.rows import to_json
from curvote.run.project import Project, find_project

if TYPE_CHECKING:
    from curvote.reproduce.entry import Reproduction
    from curvote.run.history import RunRecord

Name = Annotated[str, typer.Argument(help="A table, a figure: see `curvote list`.")]


def reproduce(  # noqa: PLR0917 - the options of a command are its arguments
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
    from curvote.reproduce.lookup import paper_of

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
    from curvote.flows.output.tables import print_rows

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
    from curvote.flows.reproducing import run_reproduction

    return run_reproduction(place, entry, options)
