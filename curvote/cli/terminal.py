"""Options and output that the commands share."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from curvote.pipeline.config.project import Project, find_project

if TYPE_CHECKING:
    from rich.console import Console


Pipeline = Annotated[str, typer.Argument(help="Name of a pipeline in pipelines.yaml.")]
ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", help="Folder of pipelines.yaml (default: the nearest)."),
]
Overrides = Annotated[
    list[str], typer.Option("--set", help="Change a setting for this run: a.b=value.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Replicates = Annotated[
    int | None, typer.Option(min=1, help="How often a study is repeated.")
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of a study's random numbers.")
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes that share the work (default: cores)."),
]
EngineName = Annotated[
    str | None,
    typer.Option("--engine", help="How work is shared: local, threads, dask."),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(min=1, max=65_535, help="Port where Prometheus finds figures."),
]


class RespelledCommand(TyperCommand):
    """A command that reads former names of its options, and says so on standard error.

    ``former`` maps them to the names that the same things have everywhere. That of an
    argument, which has no dash, is for the page of all options only.
    """

    former: Mapping[str, str] = MappingProxyType({})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words with each former name in its new spelling."""
        for place, word in enumerate(args):
            name, sign, value = word.partition("=")
            if name.startswith("-") and name in self.former:
                note_former_name(name, self.former[name])
                args[place] = f"{self.former[name]}{sign}{value}"
        return super().parse_args(ctx, args)


def note_former_name(former: str, name: str) -> None:
    """Print one line on standard error about a former name that was read."""
    typer.echo(f"curvote: {former} is an old name; write {name} from now on.", err=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        from curvote.base.version import __version__

        typer.echo(f"curvote {__version__}")
        raise typer.Exit


def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Train classifiers from data that never leaves its owner unprotected."""


LogFormat = Annotated[
    Literal["text", "json"], typer.Option(help="Progress as text or as JSON.")
]


def open_project(start: Path | None, *, starter: bool = False) -> Project:
    """Return the project; report if it has no pipelines.yaml of its own.

    Parameters and errors are those of `find_project`.
    """
    from curvote.flows import lines

    project = find_project(start, starter=starter)
    if project.starter:
        lines.write_line(
            f"{project.root} has no pipelines.yaml, so the examples that come with"
            " curvote are used; `curvote init` begins your own."
        )
    return project


def require_package(name: str) -> None:
    """Raise ModuleNotFoundError for a package that is not installed; import nothing."""
    if find_spec(name) is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def open_store(start: Path | None, *, starter: bool = False) -> Project:
    """Return the project as `open_project`, with raw artifacts where they belong.

    ModuleNotFoundError, before anything else: the extra `pipeline` is not installed.
    """
    require_package("pyarrow")
    from curvote.pipeline.store.artifacts import migrate_raw_artifacts

    project = open_project(start, starter=starter)
    migrate_raw_artifacts(project)
    return project


def set_up_output(project: Project, log_format: str, port: int | None) -> None:
    """Set the format of lines, and serve metrics at ``port`` if it is given."""
    from curvote.flows import lines

    lines.set_format(log_format)
    if port is not None:
        from curvote.flows.serving.metrics import ProjectMetrics, serve_metrics

        serve_metrics(ProjectMetrics(project), port)


def print_json(document: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(document, indent=1))


def print_json_or_rows(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], as_json: bool
) -> None:
    """Print rows as a JSON document, or chosen columns of them as a table."""
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, columns)


def print_rows(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Print chosen columns of plain rows."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    make_console().print(table)


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print pairs of a name and a text below a title."""
    from rich.markup import escape

    print_rows([{"": key, title: escape(text)} for key, text in facts], ("", title))


def make_console() -> Console:
    """Return a console for the terminal, or a wide one for a file."""
    from rich.console import Console

    terminal = Console()
    # A pipe has no width; folding numbers there would only make them unreadable.
    return terminal if terminal.is_terminal else Console(width=160)


def relative_to_here(path: Path) -> Path:
    """Return a path relative to the current folder, if it lies below."""
    folder = Path.cwd()
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def numbered_lines(total: int) -> Callable[[str], None]:
    """Return a function that prints a numbered line with the elapsed time."""
    started, numbers = time.monotonic(), count(1)

    def print_numbered(text: str) -> None:
        line = f"[{next(numbers)}/{total}] {text} ({time.monotonic() - started:.1f} s)"
        print(line, file=sys.stderr, flush=True)

    return print_numbered


@contextmanager
def interruptible(command: str, then: str = "goes on from here") -> Iterator[None]:
    """Turn Ctrl-C into one line, what the command does ``then``, and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        line = f"curvote: interrupted; `curvote {command}` {then}."
        print(line, file=sys.stderr)
        raise SystemExit(130) from None


_GROUP_KEY = itemgetter("stage", "part", "action", "reasons")


def _protocol(cell: str) -> str:
    """Return the protocol that a cell begins with, empty where a plan has but one."""
    first = cell.partition(" ")[0]
    return "" if "=" in first else first


def print_plan(rows: Sequence[dict[str, Any]], *, why: bool = False) -> None:
    """Print a plan, the cells of a stage that share action and reason in one line.

    With ``why`` every reason stands on a line of its own, else the first and how many
    more there are.
    """
    lines: list[dict[str, Any]] = []
    parts = {(row["stage"], _protocol(row["cell"]), row["part"]) for row in rows}
    ways = Counter((stage, protocol) for stage, protocol, _ in parts)
    for (stage, part, action, reasons), group in groupby(rows, _GROUP_KEY):
        cells = [row["cell"] for row in group]
        cell = cells[0] if len(cells) == 1 else f"{len(cells)} cells"
        shown_reasons = reasons
        if len(reasons) > 1 and not why:
            shown_reasons = [f"{reasons[0]}, and {len(reasons) - 1} more: --why"]
        first, *more = shown_reasons
        several = ways[stage, _protocol(cells[0])] > 1
        part_name = part.rpartition(".")[2].partition("_")[0]
        named = f"{stage} ({part_name})" if several else stage
        line = {"stage": named, "cell": cell, "action": action}
        lines.append(line | {"reason": first})
        lines += (dict.fromkeys(line, "") | {"reason": reason} for reason in more)
    print_rows(lines, ("stage", "cell", "action", "reason"))
