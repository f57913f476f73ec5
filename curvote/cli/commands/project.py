"""Project commands: `curvote init`, `list`, `check` and `gc`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.base.errors import UserError
from curvote.cli.terminal import (
    Json,
    Pipeline,
    ProjectOption,
    open_project,
    print_json,
    relative_to_here,
)
from curvote.data.registry import DATASETS
from curvote.mechanisms.registry import MECHANISMS
from curvote.pipeline.config.project import find_project

if TYPE_CHECKING:
    from curvote.data.tables.card import FileCard


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
    from curvote.data.tables.starter import TO_STATE
    from curvote.pipeline.config.starter import begin_project

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
        from curvote.pipeline.config.starter import editor_schema

        print_json(editor_schema())
        return
    from curvote.chain.lookup import names_at_key
    from curvote.pipeline.config.file import PipelinesFile, list_pipelines

    file = PipelinesFile(open_project(project, starter=True))
    about = [overview.row() for overview in list_pipelines(file)]
    names: dict[str, list[str]] = {
        "sources": list(DATASETS),
        "mechanisms": list(MECHANISMS),
        "learners": names_at_key("learner.name"),
    }
    if every or as_json:
        from curvote.papers.registry import reproductions

        names["reproduce"] = list(reproductions())
    if as_json:
        print_json({"pipelines": file.names(), "about": about} | names)
        return
    _print_lists(about, names)


def _print_lists(
    about: list[dict[str, Any]], names_by_kind: dict[str, list[str]]
) -> None:
    from curvote.cli.tables import print_rows

    for group, group_rows in groupby(about, lambda row: row["group"]):
        typer.echo(f"{group}")
        rows = [row | {"pipeline": f"  {row['name']}"} for row in group_rows]
        print_rows(rows, _COLUMNS)
        typer.echo()
    for kind, names in names_by_kind.items():
        typer.echo(f"{kind:11} {', '.join(names)}")
    if "reproduce" not in names_by_kind:
        typer.echo("`--all` also lists what `curvote reproduce` takes.")


MAX_SHOWN_COLUMNS = 40  # of a wide table those that lie outside most


def check(
    pipeline: Pipeline, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Read a pipeline's own file and print its card: for its owner, stored nowhere.

    Exit 2 where something is wrong; what is only odd is said and left to you.
    """
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.file import user_file_card

    place = open_project(project)
    file = file_of(place, pipeline)
    configured = file.configure_pipeline(pipeline)
    if configured.pipeline.schedule is not None:
        from curvote.flows.serving import schedules  # it takes Prefect a second

        schedules.check_schedules({pipeline: configured.pipeline.schedule.model_dump()})
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

    from curvote.cli.tables import print_rows

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


def gc(
    dry_run: Annotated[bool, typer.Option(help="Only say what would go.")] = False,
    keep: Annotated[int, typer.Option(min=1, help="Runs to keep a pipeline.")] = 1,
    older: Annotated[
        str | None, typer.Option(help="Also records, pages, logs: 36h, 90d, 12w.")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Delete artifacts that no pipeline's latest completed run uses, and what is old.

    What is old says --older, or retention in pipelines.yaml; what a latest run needs, a
    release, a ledger and an intake always stay.
    """
    from curvote.flows.serving.retention import collect_garbage, retention_limits
    from curvote.pipeline.store.artifacts import migrate_raw_artifacts

    place = find_project(project)
    migrate_raw_artifacts(place)
    limits = retention_limits(place, older)
    verb = "would free" if dry_run else "freed"
    for pile in collect_garbage(place, keep=keep, limits=limits, dry_run=dry_run):
        size, count = pile.bytes / 2**20, len(pile.paths)
        typer.echo(f"{verb} {size:.1f} MiB: {count} {pile.kind}")
