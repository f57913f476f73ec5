"""The command `curvote reproduce`: what is published beside what curvote finds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.cli_data import ProjectOption

Name = Annotated[str, typer.Argument(help="A table, a figure: see `curvote list`.")]
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
    from curvote.reproduce.lookup import wing_of
    from curvote.run.project import find_project
    from flows import environment

    wing = wing_of(name)
    entry = wing.REPRODUCTIONS[name]
    place = find_project(project)
    environment.prepare(place.root)
    from flows.reproducing import completed_runs

    given = {"replicates": replicates, "seed": seed, "workers": workers}
    try:
        records = completed_runs(place, entry, given)
        rows, written = wing.compare(place, name, records)
    except KeyboardInterrupt:
        again = f"curvote: interrupted; `curvote reproduce {name}` goes on from here."
        print(again, file=sys.stderr)
        raise SystemExit(130) from None
    if as_json:
        from curvote.reproduce.rows import to_json

        typer.echo(to_json(rows))
        return
    from flows.tables import print_rows

    typer.echo(f"{entry.title}: {entry.quantity} in %, ± one standard error\n")
    print_rows(*wing.laid_out(name, rows))
    _say([*wing.agreement(name, rows), "\nwritten:"], written)


def _say(words: list[str], written: list[Path]) -> None:
    here = Path.cwd()
    places = (p.relative_to(here) if p.is_relative_to(here) else p for p in written)
    for line in (*words, *places):
        typer.echo(line)
