"""What the commands share: options, answers as JSON or a table, lines of progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from curvote.run.project import Project, find_project

Pipeline = Annotated[str, typer.Argument(help="A name from pipelines.yaml.")]
ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", help="Folder with pipelines.yaml (default: nearest)."),
]
Why = Annotated[bool, typer.Option("--why", help="Every reason, not just the first.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Replicates = Annotated[int | None, typer.Option(min=1, help="Independent repetitions.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the study.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Workers inside a stage (default: cores).")
]
EngineName = Annotated[
    str | None,
    typer.Option("--engine", help="What runs them: local, threads or dask."),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(min=1, max=65_535, help="Figures for Prometheus, on this machine."),
]


def _say_version(wanted: bool) -> None:
    if wanted:
        from curvote.version import __version__

        typer.echo(f"curvote {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", help="Say which it is.", is_eager=True, callback=_say_version
    ),
]


def top(version: Version = False) -> None:
    """Train classifiers from data that never leaves its owner unprotected."""


LogFormat = Annotated[
    Literal["text", "json"], typer.Option(help="How lines of progress are written.")
]


def project_of(start: Path | None, *, starter: bool = False) -> Project:
    """Return the project; one without a pipelines.yaml is said to have curvote's own.

    Parameters and errors are those of `find_project`.
    """
    from curvote.flows.output import lines

    found = find_project(start, starter=starter)
    if found.starter:
        lines.say(
            f"no pipelines.yaml in {found.root}: these pipelines are those that"
            " curvote brings. `curvote init` begins your own."
        )
    return found


def outside(project: Project, log_format: str, port: int | None) -> None:
    """Choose how lines of a run are written, and where figures are; None: nowhere."""
    from curvote.flows.output import lines

    lines.use(log_format)
    if port is not None:
        from curvote.flows.metrics import Figures, open_page

        open_page(Figures(project), port)


def say_json(document: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(document, indent=1))


def say_rows(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], as_json: bool
) -> None:
    """Print rows as a JSON document, or chosen columns of them as a table."""
    if as_json:
        say_json(rows)
        return
    from curvote.flows.output.tables import print_rows

    print_rows(rows, columns)


def from_here(path: Path) -> Path:
    """Return a path as it is named from the current folder, if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def numbered(total: int) -> Callable[[str], None]:
    """Return what prints a line of progress, with the time, on standard error."""
    started, numbers = time.monotonic(), count(1)

    def say(text: str) -> None:
        line = f"[{next(numbers)}/{total}] {text} ({time.monotonic() - started:.1f} s)"
        print(line, file=sys.stderr, flush=True)

    return say


@contextmanager
def interruptible(command: str) -> Iterator[None]:
    """Let Ctrl-C end with one line and exit 130; what was finished is kept."""
    try:
        yield
    except KeyboardInterrupt:
        line = f"curvote: interrupted; `curvote {command}` goes on from here."
        print(line, file=sys.stderr)
        raise SystemExit(130) from None
