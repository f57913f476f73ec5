"""Project commands: `init`, `list`, `check`, `gc`, `status`, `health`, `doctor`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.base.errors import UserError
from curvote.cli import terminal
from curvote.cli.terminal import Json, Pipeline, ProjectOption, print_json, print_rows
from curvote.data.registry import DATASETS
from curvote.flows.environment import prepare_environment
from curvote.mechanisms.registry import MECHANISMS
from curvote.pipeline.config.project import Project, find_project

if TYPE_CHECKING:
    from curvote.data.tables.card import FileCard


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the new project.")] = Path(),
    table: Annotated[
        Path | None,
        typer.Option("--table", help="Your CSV or Parquet: a row for each record."),
    ] = None,
    curves: Annotated[
        Path | None, typer.Option("--curves", help="Or: a row for each measurement.")
    ] = None,
) -> None:
    """Begin a project: write a pipelines.yaml, with the columns of your file.

    You state the bounds: none is taken from the file, and no file is overwritten.
    """
    from curvote.data.tables.starter import TO_STATE
    from curvote.pipeline.config.schema import begin_project

    if table and curves:
        raise UserError("a pipeline reads one file: give --table or --curves.")
    path, name = begin_project(folder, "table" if table else "curves", table or curves)
    typer.echo(f"written: {terminal.relative_to_here(path.resolve())}")
    n_placeholders = path.read_text(encoding="utf-8").count(TO_STATE)
    if n_placeholders:
        typer.echo(
            f"Write what you know in its {n_placeholders} places marked {TO_STATE};"
            " then type:"
        )
    there = "" if folder.resolve() == Path.cwd() else f" --project {folder}"
    for command in ("check", "run", "report") if n_placeholders else ("run", "report"):
        typer.echo(f"  curvote {command} {name}{there}")


_COLUMNS = ("pipeline", "protocols", "source", "description")


def list_(
    every: Annotated[
        bool, typer.Option("--all", help="Also list published tables and figures.")
    ] = False,
    as_json: Json = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of pipelines.yaml.")
    ] = False,
    project: ProjectOption = None,
) -> None:
    """List the pipelines, and the data, mechanisms and learners to choose from."""
    if schema:
        from curvote.pipeline.config.schema import editor_schema

        print_json(editor_schema())
        return
    from curvote.chain.lookup import names_at_key
    from curvote.pipeline.config.file import PipelinesFile, list_pipelines

    file = PipelinesFile(terminal.open_project(project, starter=True))
    about = list_pipelines(file)
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
    for group, group_rows in groupby(about, lambda row: row["group"]):
        typer.echo(f"{group}")
        rows = [row | {"pipeline": f"  {row['name']}"} for row in group_rows]
        print_rows(rows, _COLUMNS)
        typer.echo()
    for kind, of_kind in names.items():
        typer.echo(f"{kind:11} {', '.join(of_kind)}")
    if not every:
        typer.echo("`--all` also lists what `curvote reproduce` takes.")


MAX_SHOWN_COLUMNS = 40  # of a wide table those that lie outside most


def check(
    pipeline: Pipeline, as_json: Json = False, project: ProjectOption = None
) -> None:
    """Read the file of a pipeline and say what is in it and what looks wrong.

    Only its owner should see that; it is stored nowhere. What is wrong ends with exit
    code 2; what is only odd is left to you.
    """
    from curvote.papers.registry import file_of
    from curvote.pipeline.config.file import user_file_card

    place = terminal.open_project(project)
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
        typer.echo(
            f"{pipeline} can run: its source, {name}, is no file of yours to check."
        )
    else:
        from rich.markup import escape

        terminal.print_facts(escape(card.path.name), _card_facts(card))
        print()
        columns = card.columns
        if len(columns) > MAX_SHOWN_COLUMNS:
            odd = sorted(columns, key=lambda c: (c.outside, c.missing), reverse=True)
            columns = tuple(odd[:MAX_SHOWN_COLUMNS])
        rows = [
            {
                "column": escape(column.name),
                "bounds": f"{column.lower:g} to {column.upper:g}",
                "missing": f"{column.missing:,}",
                "below": f"{column.below:,}",
                "above": f"{column.above:,}",
                "beyond": f"{100 * column.share:.2f} %",
            }
            for column in columns
        ]
        print_rows(rows, list(rows[0]))
        if more := len(card.columns) - len(rows):
            typer.echo(f"and {more} more columns; --json prints all.")
        print()
        for remark in card.remarks():
            typer.echo(f"look: {remark}")
        typer.echo(f"{pipeline} can run; type: curvote run {pipeline}")


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
    keep: Annotated[int, typer.Option(min=1, help="Runs to keep per pipeline.")] = 1,
    older: Annotated[
        str | None, typer.Option(help="Also delete what is older: 36h, 90d, 12w.")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Free disk space: delete results that no latest run needs, and what is old.

    What is old says --older, or `retention` in pipelines.yaml. Releases, ledgers and
    what came in always stay.
    """
    from curvote.flows.serving.retention import collect_garbage, retention_limits
    from curvote.pipeline.store.artifacts import migrate_raw_artifacts

    place = find_project(project)
    migrate_raw_artifacts(place)
    limits = retention_limits(place, older)
    verb = "would free" if dry_run else "freed"
    for pile in collect_garbage(place, keep=keep, limits=limits, dry_run=dry_run):
        size = pile.bytes / 2**20
        typer.echo(f"{verb} {size:.1f} MiB: {pile.count} {pile.kind}")


_STATUS_COLUMNS = (
    *("pipeline", "run", "status", "started", "last_success", "artifacts", "why"),
)
_REFRESH_SECONDS = 2.0


def status(
    verify: Annotated[bool, typer.Option(help="Also check every file.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh until Ctrl-C.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Also what `reproduce` ran.")
    ] = False,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Show the latest run of each pipeline, and whether its files are sound.

    Those of `reproduce` are shown with --all only, or where a file of theirs changed.
    """
    place = terminal.open_store(project)
    if watch:
        if as_json:
            raise UserError("--watch draws, --json prints once: leave one out.")
        screen = terminal.make_console()
        with terminal.interruptible("status"):
            while True:  # drawn in its place on a terminal
                rows = _status_rows(place, verify, every)
                if screen.is_terminal:
                    screen.clear()
                _print_status(rows, as_json=False)
                time.sleep(_REFRESH_SECONDS)
    rows = _status_rows(place, verify, every)
    _print_status(rows, as_json)
    if any(row["altered"] for row in rows):
        raise typer.Exit(1)


def _status_rows(project: Project, verify: bool, every: bool) -> list[dict[str, Any]]:
    from curvote.flows.environment import is_alive
    from curvote.pipeline.config.file import ELSEWHERE
    from curvote.pipeline.run.history import project_status

    rows = project_status(project, content=verify, is_alive=is_alive)
    if every or not any(row["group"] == ELSEWHERE for row in rows):
        return rows
    from curvote.papers.registry import paper_pipelines

    own_names = {row["pipeline"] for row in rows if row["group"] != ELSEWHERE}
    hidden = paper_pipelines() - own_names  # that only a paper's file holds
    return [row for row in rows if row["altered"] or row["pipeline"] not in hidden]


def _print_status(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    for group, group_rows in groupby(rows, lambda row: row["group"]):
        typer.echo(group)
        indented = [row | {"pipeline": f"  {row['pipeline']}"} for row in group_rows]
        all_columns = (*_STATUS_COLUMNS, "description")
        columns = [name for name in all_columns if any(row[name] for row in indented)]
        print_rows(indented, columns)


def health(
    max_age: Annotated[
        str | None, typer.Option(help="Fail if a last success is older: 90m, 2h, 7d.")
    ] = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Say whether `curvote serve` works as it should; exit 1 if not."""
    from curvote.flows.serving.health import check_health as look

    age = None
    place = terminal.open_project(project)
    if max_age is not None:
        units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
        units["w"] = "weeks"
        number, unit = max_age[:-1], max_age[-1:]
        digits = number.isdecimal() and len(number) <= 6
        if unit not in units or not digits or not int(number):
            raise UserError(f"--max-age {max_age!r}: write it as 90m, 2h or 7d.")
        age = timedelta(**{units[unit]: int(number)})
    rows = look(place, age)
    terminal.print_json_or_rows(rows, ("check", "status", "found", "fix"), as_json)
    if any(row["status"] != "ok" for row in rows):
        raise typer.Exit(1)


def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair what can be repaired without loss.")
    ] = False,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Check versions, disks, databases and files, say what to do; exit 1 if not ok."""
    from curvote.cli.doctor import repair_project, run_checks

    place = find_project(project)
    prepare_environment(place.root)
    if fix:
        for line in repair_project(place):
            print(line, file=sys.stderr)
    findings = run_checks(place)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{finding.status:8} {finding.check}: {finding.found}")
            if finding.fix:
                typer.echo(f"{'':8} -> {finding.fix}")
    if any(finding.status != "ok" for finding in findings):
        raise typer.Exit(1)
