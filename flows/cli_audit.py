"""The command `curvote audit`: try to falsify what the mechanisms claim."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli_data import ProjectOption

if TYPE_CHECKING:
    from curvote.audit.message_subject import MessageSubject
    from curvote.audit.row import Row
    from curvote.audit.verdict import Audited

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Mechanisms, messages or broken.NAME (default: all)."),
]
PipelineOption = Annotated[
    str | None, typer.Option("--pipeline", help="Audit what its clients really send.")
]
Epsilons = Annotated[
    list[float] | None, typer.Option("--epsilon", help="Levels of shipped ones.")
]
Samples = Annotated[int, typer.Option(min=1000, help="Draws for each input tried.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the draws.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes (default: cores).")]
Out = Annotated[Path | None, typer.Option(help="Folder of audit.json and the figure.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def audit(  # noqa: PLR0917 - the options of a command are its arguments
    names: Names = None,
    pipeline: PipelineOption = None,
    epsilon: Epsilons = None,
    samples: Samples = 300_000,
    seed: Seed = 20240801,
    workers: Workers = None,
    out: Out = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Try to falsify the privacy claims; exit 1 if one falls or a twin is missed."""
    from curvote.audit import figure

    folder = out or _project(project).reports / (pipeline or "") / "audit"
    asked = _named(names or [], epsilon or [], samples, pipeline)
    sent = _sent(project, pipeline)
    told: list[tuple[Audited, int]] = [(subject, samples) for subject in sent]
    rows = list(_examined([*told, *asked], seed, workers or -1))
    if pipeline:
        _keep(project, pipeline, sent, rows)
    written = figure.write(rows, folder)
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in rows], indent=1))
    else:
        _table(rows)
        typer.echo(f"\nWritten: {', '.join(map(str, written))}\n{_total(rows)}")
    if not all(row.good for row in rows):
        raise typer.Exit(1)


def _project(start: Path | None) -> Any:
    from curvote.run.project import find_project

    return find_project(start)


def _named(
    names: list[str], epsilons: list[float], samples: int, pipeline: str | None
) -> list[tuple[Audited, int]]:
    """Return what the names stand for; without any, all, unless a pipeline is named."""
    from curvote.audit import choice

    return choice.jobs(names, epsilons, samples) if names or not pipeline else []


def _sent(project: Path | None, pipeline: str | None) -> list[MessageSubject]:
    """Return the messages that clients of the pipeline send."""
    if pipeline is None:
        return []
    from curvote.audit.message_subject import of_message
    from curvote.reproduce.lookup import file_of
    from curvote.run.audited import tasks

    place = _project(project)
    configured = file_of(place, pipeline).configured(pipeline)
    return [of_message(task) for task in tasks(place, configured)]


def _keep(
    project: Path | None, pipeline: str, sent: list[MessageSubject], rows: list[Row]
) -> None:
    """Keep the verdicts on what clients send; its rows come first."""
    from curvote.run.audited import save

    about = zip((subject.task for subject in sent), rows, strict=False)
    save(_project(project), pipeline, ((task, row.to_json()) for task, row in about))


def _examined(
    asked: list[tuple[Audited, int]], seed: int, workers: int
) -> Iterator[Row]:
    from curvote.audit.verdict import spread

    yield from _told(spread(asked, seed, workers), len(asked))


def _told(rows: Iterable[Row], count: int) -> Iterator[Row]:
    """Show progress on standard error: a bar on a terminal, else plain lines."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if console.is_terminal:
        yield from track(rows, "audit", count, console=console, transient=True)
        return
    started = time.monotonic()
    for done, row in enumerate(rows, 1):
        seconds = time.monotonic() - started
        said = f"[{done}/{count}] {row.mechanism} {row.claimed:g}: {row.verdict}"
        print(f"{said} ({seconds:.1f} s)", file=sys.stderr, flush=True)
        yield row


def _table(rows: list[Row]) -> None:
    from flows.tables import print_rows

    columns = ("mechanism", "claimed", "exact", "proved", "verdict", "why")
    print_rows([_line(row) for row in rows], columns)


def _line(row: Row) -> dict[str, Any]:
    if row.broken:
        why = "by " + ", ".join(row.caught_by) if row.caught_by else ""
    else:
        why = "; ".join(f"{name} {row.checks[name]}" for name in row.caught_by)
    return {
        "mechanism": row.mechanism,
        "claimed": f"{row.claimed:g}",
        "exact": "" if row.exact is None else f"{row.exact:.6g}",
        "proved": "" if row.lower_bound is None else f"{row.lower_bound:.3f}",
        "verdict": row.verdict,
        "why": why,
    }


def _total(rows: list[Row]) -> str:
    """Return the last line: how many hold, and what does not."""
    verdicts = [row.verdict for row in rows]
    counts = {name: verdicts.count(name) for name in ("violated", "missed")}
    line = f"{verdicts.count('pass')} shipped pass, {verdicts.count('caught')} broken"
    bad = "".join(f", {n} {name}" for name, n in counts.items() if n)
    return f"{line} caught{bad}"
