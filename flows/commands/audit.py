"""The command `curvote audit`: try to falsify what the mechanisms claim."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.flows.output.terminal import (
    Json,
    ProjectOption,
    Workers,
    numbered,
    say_json,
    say_rows,
)
from curvote.run.project import Project, find_project

if TYPE_CHECKING:
    from curvote.audit.row import Row
    from curvote.audit.sent_subject import SentSubject
    from curvote.audit.verdict import Audited

Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Mechanisms, messages, broken.NAME; * stands for any (default: all)."
    ),
]
PipelineOption = Annotated[
    str | None, typer.Option("--pipeline", help="Audit what its clients really send.")
]
Epsilons = Annotated[
    list[float] | None, typer.Option("--epsilon", help="Levels of shipped ones.")
]
Samples = Annotated[int, typer.Option(min=1000, help="Draws for each input tried.")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed of draws and of what is tried (default: drawn)."),
]
Out = Annotated[Path | None, typer.Option(help="Folder of audit.json and the figure.")]
COLUMNS = ("mechanism", "claimed", "exact", "proved", "verdict", "why")


def audit(  # noqa: PLR0917 - the options of a command are its arguments
    names: Names = None,
    pipeline: PipelineOption = None,
    epsilon: Epsilons = None,
    samples: Samples = 300_000,
    seed: Seed = None,
    workers: Workers = None,
    out: Out = None,
    as_json: Json = False,
    project: ProjectOption = None,
) -> None:
    """Try to falsify the privacy claims; exit 1 if one falls or a twin is missed."""
    from curvote.audit import choice, figure
    from curvote.audit.verdict import spread

    seed = secrets.randbelow(1 << 32) if seed is None else seed
    folder = out or _folder(project, pipeline)
    named = names or not pipeline
    asked = choice.jobs(names or [], epsilon or [], samples, seed) if named else []
    sent = _sent(find_project(project), pipeline) if pipeline else []
    told: list[tuple[Audited, int]] = [(subject, samples) for subject in sent]
    told += asked
    rows = list(_told(spread(told, seed, workers or -1), len(told)))
    if pipeline:
        from curvote.run.audited import save

        about = zip((subject.task for subject in sent), rows, strict=False)
        kept = ((task, row.to_json()) for task, row in about)
        save(find_project(project), pipeline, kept)
    written = figure.write(rows, folder)
    if as_json:
        say_json([row.to_json() for row in rows])
    else:
        say_rows([_line(row) for row in rows], COLUMNS, as_json=False)
        typer.echo(f"\nWritten: {', '.join(map(str, written))}")
        typer.echo(f"--seed {seed} repeats it\n{_total(rows)}")
    if not all(row.good for row in rows):
        raise typer.Exit(1)


def _folder(project: Path | None, pipeline: str | None) -> Path:
    place = find_project(project, starter=not pipeline)
    return place.reports / (pipeline or "") / "audit"


def _sent(project: Project, pipeline: str) -> list[SentSubject]:
    from curvote.audit.message_subject import of_message
    from curvote.reproduce.lookup import file_of
    from curvote.run.audited import tasks

    configured = file_of(project, pipeline).configured(pipeline)
    return [of_message(task) for task in tasks(project, configured)]


def _told(rows: Iterable[Row], count: int) -> Iterator[Row]:
    """Show progress on standard error: a bar on a terminal, else plain lines."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if console.is_terminal:
        yield from track(rows, "audit", count, console=console, transient=True)
        return
    say = numbered(count)
    for row in rows:
        say(f"{row.mechanism} {row.claimed:g}: {row.verdict}")
        yield row


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
