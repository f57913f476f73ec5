"""The command `curvote audit`: tests of the mechanisms' privacy claims."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curvote.cli import terminal
from curvote.pipeline.config.project import find_project

if TYPE_CHECKING:
    from curvote.audit import verdict
    from curvote.checks.subject import Row, SentSubject


COLUMNS = ("mechanism", "claimed", "exact", "proved", "verdict", "why")


def audit(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Mechanisms or messages to try, such as laplace (default: all)."
        ),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option("--pipeline", help="Try what this pipeline's clients send."),
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", help="Try them at this epsilon.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1000, help="Random draws for each input.")
    ] = 300_000,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed that repeats an audit (default: a new one)."),
    ] = None,
    workers: terminal.Workers = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for audit.json and the figure.")
    ] = None,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
) -> None:
    """Try to break every privacy claim, and find bugs put in on purpose.

    It exits with 1 if a claim falls, or if a mechanism that is broken on purpose is
    not found out.
    """
    from curvote.audit import choice, verdict

    seed = secrets.randbelow(1 << 32) if seed is None else seed
    if out is None:
        place = find_project(project, starter=not pipeline)
        out = place.reports / (pipeline or "") / "audit"
    messages: list[SentSubject] = []
    if pipeline:
        from curvote.audit.message_subject import message_subject_of
        from curvote.papers.registry import file_of
        from curvote.pipeline.run.audit_tasks import pipeline_tasks, save_verdicts

        place = find_project(project)
        configured = file_of(place, pipeline).configure_pipeline(pipeline)
        messages = [message_subject_of(t) for t in pipeline_tasks(place, configured)]
    jobs: list[tuple[verdict.Audited, int]] = [(m, samples) for m in messages]
    if names or not pipeline:
        jobs += choice.audit_jobs(names or [], epsilon or [], samples, seed)
    results = verdict.run_parallel(jobs, seed, workers or -1)
    rows = list(_with_progress(results, len(jobs)))
    if pipeline:
        pairs = zip(messages, rows, strict=False)
        documents = ((subject.task, row.to_json()) for subject, row in pairs)
        save_verdicts(find_project(project), pipeline, documents)
    written = verdict.write_figure(rows, out)
    if as_json:
        terminal.print_json([row.to_json() for row in rows])
    else:
        lines = []
        for row in rows:
            why = "; ".join(f"{name} {row.checks[name]}" for name in row.caught_by)
            if row.broken:
                why = "by " + ", ".join(row.caught_by) if row.caught_by else ""
            exact = "" if row.exact is None else f"{row.exact:.6g}"
            proved = "" if row.lower_bound is None else f"{row.lower_bound:.3f}"
            values = row.mechanism, f"{row.claimed:g}", exact, proved, row.verdict, why
            lines.append(dict(zip(COLUMNS, values, strict=True)))
        terminal.print_rows(lines, COLUMNS)
        typer.echo(f"\nWritten: {', '.join(map(str, written))}")
        typer.echo(f"repeat it with --seed {seed}")
        verdicts = [row.verdict for row in rows]
        counts = {name: verdicts.count(name) for name in ("violated", "missed")}
        bad = "".join(f", {n} {name}" for name, n in counts.items() if n)
        passed, caught = verdicts.count("pass"), verdicts.count("caught")
        typer.echo(f"{passed} claims hold, {caught} broken on purpose were caught{bad}")
    if not all(row.good for row in rows):
        raise typer.Exit(1)


def _with_progress(rows: Iterable[Row], count: int) -> Iterator[Row]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if console.is_terminal:
        yield from track(rows, "audit", count, console=console, transient=True)
        return
    say = terminal.numbered_lines(count)
    for row in rows:
        say(f"{row.mechanism} {row.claimed:g}: {row.verdict}")
        yield row
