"""The command `curvote reproduce`: what is published beside what curvote finds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli_data import ProjectOption

if TYPE_CHECKING:
    from curvote.reporting.reproduce.names import Reproduction

Name = Annotated[str, typer.Argument(help="table-1, figure-2, cases-a2, beyond, ...")]
Replicates = Annotated[int | None, typer.Option(min=1, help="Independent repetitions.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the study.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes inside a stage (default: cores).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def reproduce(  # noqa: PLR0917 - the options of a command are its arguments
    name: Name,
    replicates: Replicates = None,
    seed: Seed = None,
    workers: Workers = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Run what a published table or figure takes; print paper and curvote together.

    `beyond` compares our protocols with the published ones.
    """
    from curvote.reporting.reproduce.names import find
    from curvote.run.project import find_project
    from flows import environment

    entry = find(name)
    place = find_project(project)
    environment.prepare(place.root)
    from flows import reproducing

    given = {"replicates": replicates, "seed": seed, "workers": workers}
    try:
        rows, written = reproducing.reproduced(place, entry, given)
    except KeyboardInterrupt:
        again = f"curvote: interrupted; `curvote reproduce {name}` goes on from here."
        print(again, file=sys.stderr)
        raise SystemExit(130) from None
    if as_json:
        from curvote.reporting.reproduce.write import to_json

        typer.echo(to_json(rows))
        return
    _print(entry, rows, written)


def _print(
    entry: Reproduction, rows: list[dict[str, Any]], written: list[Path]
) -> None:
    from flows.reproducing import agreement, laid_out
    from flows.tables import print_rows

    typer.echo(f"{entry.title}: {entry.quantity} in %, ± one standard error\n")
    print_rows(*laid_out(entry, rows))
    for line in agreement(entry, rows):
        typer.echo(line)
    here = Path.cwd()
    for path in written:
        typer.echo(path.relative_to(here) if path.is_relative_to(here) else path)
