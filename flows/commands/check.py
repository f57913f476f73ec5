"""The command `curvote check`: a pipeline and its file, before any server starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from curvote.flows.output.terminal import (
    Json,
    Pipeline,
    ProjectOption,
    open_project,
    print_json,
)

if TYPE_CHECKING:
    from curvote.datasets.own.examined import FileCard

MAX_SHOWN_COLUMNS = 40  # of a wide table those that lie outside most


def check(
    pipeline: Pipeline, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Read a pipeline's own file and print its card: for its owner, stored nowhere.

    Exit 2 where something is wrong; what is only odd is said and left to you.
    """
    from curvote.reproduce.lookup import file_of
    from curvote.run.own_data import user_file_card

    place = open_project(project)
    file = file_of(place, pipeline)
    configured = file.configure_pipeline(pipeline)
    if configured.pipeline.schedule is not None:
        from curvote.flows.serving import firing  # it takes Prefect a second

        firing.check_schedules({pipeline: configured.pipeline.schedule.model_dump()})
    with file.errors_located(pipeline):
        card = user_file_card(place, configured)
    if as_json:
        print_json(card.to_json() if card else None)
    elif card is None:
        name = configured.pipeline.source["name"]
        typer.echo(f"{pipeline} is right as it stands; {name} is no file of yours.")
    else:
        _print_card(pipeline, card)


def _print_card(pipeline: str, card: FileCard) -> None:
    from rich.markup import escape

    from curvote.flows.output.tables import print_rows

    title = escape(card.path.name)
    facts = [{"": key, title: escape(text)} for key, text in _card_facts(card)]
    print_rows(facts, ("", title))
    print()
    odd = sorted(card.columns, key=lambda c: (c.outside, c.missing), reverse=True)
    columns = card.columns if len(odd) <= MAX_SHOWN_COLUMNS else odd[:MAX_SHOWN_COLUMNS]
    rows = [
        {
            "column": escape(column.name),
            "bounds": f"{column.lower:g} to {column.upper:g}",
            "missing": f"{column.missing:,}",
            "below": f"{column.below:,}",
            "above": f"{column.above:,}",
            "outside": f"{100 * column.share:.2f} %",
        }
        for column in columns
    ]
    print_rows(rows, list(rows[0]))
    if len(rows) < len(odd):
        typer.echo(f"and {len(odd) - len(rows)} columns more: --json has all.")
    print()
    for remark in card.remarks():
        typer.echo(f"look: {remark}")
    typer.echo(f"{pipeline} can run: curvote run {pipeline}")


def _card_facts(card: FileCard) -> Iterator[tuple[str, str]]:
    yield "rows", f"{card.rows:,}"
    yield "clients", f"{card.clients:,}"
    total = max(card.clients, 1)
    for name, n in card.classes.items():
        yield f"  {name}", f"{n:,} ({100 * n / total:.1f} %)"
    if card.repeats:
        yield "repeats", f"{card.repeats:,}, {card.repeats_are}"
    for why, n in card.left_out.items():
        if n:
            yield "left out", f"{n:,}: {why}"
    if card.filled:
        yield "filled", f"{card.filled:,} with the public centre"
