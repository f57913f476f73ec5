"""The command `curvote check`: a pipeline and its file, before any server starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from curvote.flows.output.terminal import (
    Json,
    Pipeline,
    ProjectOption,
    project_of,
    say_json,
)

if TYPE_CHECKING:
    from curvote.datasets.own.examined import Examined

MOST_COLUMNS = 40  # of a wide table those that lie outside most


def check(
    pipeline: Pipeline, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Read a pipeline's own file and print its card: for its owner, stored nowhere.

    Exit 2 where something is wrong; what is only odd is said and left to you.
    """
    from curvote.reproduce.lookup import file_of
    from curvote.run.own_data import examined

    place = project_of(project)
    file = file_of(place, pipeline)
    configured = file.configured(pipeline)
    if configured.pipeline.schedule is not None:
        from curvote.flows.serving import firing  # it takes Prefect a second

        firing.check({pipeline: configured.pipeline.schedule.model_dump()})
    with file.placing(pipeline):
        found = examined(place, configured)
    if as_json:
        say_json(found.to_json() if found else None)
    elif found is None:
        name = configured.pipeline.source["name"]
        typer.echo(f"{pipeline} is right as it stands; {name} is no file of yours.")
    else:
        _print(pipeline, found)


def _print(pipeline: str, found: Examined) -> None:
    from rich.markup import escape

    from curvote.flows.output.tables import print_rows

    title = escape(found.path.name)
    facts = [{"": key, title: escape(text)} for key, text in _facts(found)]
    print_rows(facts, ("", title))
    print()
    odd = sorted(found.columns, key=lambda c: (c.outside, c.missing), reverse=True)
    shown = found.columns if len(odd) <= MOST_COLUMNS else odd[:MOST_COLUMNS]
    rows = [
        {
            "column": escape(column.name),
            "bounds": f"{column.lower:g} to {column.upper:g}",
            "missing": f"{column.missing:,}",
            "below": f"{column.below:,}",
            "above": f"{column.above:,}",
            "outside": f"{100 * column.share:.2f} %",
        }
        for column in shown
    ]
    print_rows(rows, list(rows[0]))
    if len(rows) < len(odd):
        typer.echo(f"and {len(odd) - len(rows)} columns more: --json has all.")
    print()
    for remark in found.remarks():
        typer.echo(f"look: {remark}")
    typer.echo(f"{pipeline} can run: curvote run {pipeline}")


def _facts(found: Examined) -> Iterator[tuple[str, str]]:
    yield "rows", f"{found.rows:,}"
    yield "clients", f"{found.clients:,}"
    total = max(found.clients, 1)
    for name, n in found.classes.items():
        yield f"  {name}", f"{n:,} ({100 * n / total:.1f} %)"
    if found.repeats:
        yield "repeats", f"{found.repeats:,}, {found.repeats_are}"
    for why, n in found.left_out.items():
        if n:
            yield "left out", f"{n:,}: {why}"
    if found.filled:
        yield "filled", f"{found.filled:,} with the public centre"
