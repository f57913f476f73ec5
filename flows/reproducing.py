"""What `reproduce` does: run the pipelines, compare, and lay the rows out as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.datasets import raw, sources
from curvote.errors import Problem, UserError
from curvote.reporting.reproduce.names import Reproduction
from curvote.reporting.reproduce.rows import agreeing
from curvote.run.config import PipelinesFile
from curvote.run.project import Project
from curvote.run.source import Absent, raw_files

if TYPE_CHECKING:
    from curvote.run.history import RunRecord

Row = dict[str, Any]
Lines = tuple[list[dict[str, str]], list[str]]

_NAMES = ("group", "representation", "d", "learner", "split", "method", "setting")


def reproduced(
    project: Project, entry: Reproduction, given: dict[str, Any]
) -> tuple[list[Row], list[Path]]:
    """Run the pipelines of ``entry`` and return its rows and the files written.

    ``given`` is what the user set of replicates, seed and workers. Standard output
    stays free: whatever a run prints goes to standard error.
    """
    given = given | {"replicates": given["replicates"] or entry.replicates}
    fixed = {name: given[name] for name in ("replicates", "seed")}
    file = PipelinesFile(project)
    for pipeline in entry.pipelines:
        file.configured(pipeline, **fixed)
    with redirect_stdout(sys.stderr):
        records = [_run(project, entry, name, given) for name in entry.pipelines]
        from curvote.reporting.reproduce.write import compare

        return compare(project, entry.name, records)


def _run(
    project: Project, entry: Reproduction, pipeline: str, given: dict[str, Any]
) -> RunRecord:
    from flows.running import completed_run

    with _advice(project, entry, pipeline):
        return completed_run(project, {"pipeline": pipeline, **given})


@contextmanager
def _advice(project: Project, entry: Reproduction, pipeline: str) -> Iterator[None]:
    """Add to an error what to put where, if published data are not here."""
    try:
        yield
    except UserError as error:
        configured = PipelinesFile(project).configured(pipeline).settings[0]
        found = raw_files(project, configured.pipeline, fetch=False)
        if not isinstance(found, Absent):
            raise
        advice = Problem(_what_to_put(project, entry, found.names))
        raise UserError.several([*error.problems, advice]) from None


def _what_to_put(project: Project, entry: Reproduction, names: Iterable[str]) -> str:
    known = sources.catalogue(project.root)
    files = ", ".join(f"{known[name].file} ({known[name].url})" for name in names)
    return (
        f"{entry.name} needs {files}: put them into {raw.raw_folder(project.root)} or"
        f" a folder that {raw.MIRROR} names, then repeat the command."
    )


def agreement(entry: Reproduction, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the last words: how many cells agree with the paper, and the worst one."""
    inside, known = agreeing(entry, rows)
    if known:
        mine = "" if entry.limit == 3 else ", the paper's taken to be like ours,"
        points = ", ".join(f"{name} {points}" for name, points in entry.points.items())
        close = f" or within so many points: {points}" if points else ""
        yield f"\n{inside} of {known} cells within 3 standard errors{mine}{close}"
        worst = max(rows, key=_difference)
        named = _named(worst, _varying(rows, ("epsilon", *_NAMES)))
        where = ", ".join(f"{name} {text}" for name, text in named.items() if text)
        yield f"largest difference: {_difference(worst):.2f} points ({where})"
    yield "\nwritten:"


def _difference(row: Row) -> float:
    return abs(float(row["curvote"] - row["published"]))


def laid_out(rows: Sequence[Row]) -> Lines:
    """Return a comparison as lines of text and the columns to show.

    Where values are printed, a line a cell: paper, curvote with one standard error,
    corrected, z. Elsewhere a line a method, with a column for each epsilon.
    """
    if any(row["published"] is not None for row in rows):
        return _beside(rows)
    return _by_epsilon(rows)


def _beside(rows: Sequence[Row]) -> Lines:
    names = _varying(rows, ("epsilon", *_NAMES))
    values = ("paper", "curvote", "corrected", "z")
    lines = [
        _named(row, names)
        | {
            "paper": _number(row["published"]),
            "curvote": _with_error(row),
            "corrected": _number(row["corrected"]),
            "z": "" if row["z"] is None else f"{row['z']:+.1f}",
        }
        for row in rows
    ]
    return lines, [*names, *values]


def _by_epsilon(rows: Sequence[Row]) -> Lines:
    names = _varying(rows, _NAMES)
    columns = dict.fromkeys(_level(row) for row in sorted(rows, key=_privacy))
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        named = _named(row, names)
        empty = named | dict.fromkeys(columns, "")
        lines.setdefault(tuple(named.values()), empty)[_level(row)] = _with_error(row)
    return list(lines.values()), [*names, *columns]


def _varying(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    """Return the columns that tell rows apart."""
    return [name for name in names if len({row[name] for row in rows} - {None}) > 1]


def _named(row: Row, names: Iterable[str]) -> dict[str, str]:
    return {name: _text(row[name]) for name in names}


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _level(row: Row) -> str:
    return "no privacy" if row["epsilon"] is None else f"epsilon {row['epsilon']:g}"


def _privacy(row: Row) -> float:
    return float("inf") if row["epsilon"] is None else row["epsilon"]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _with_error(row: Row) -> str:
    error = "" if row["se"] is None else f" ± {row['se']:.2f}"
    return f"{row['curvote']:.2f}{error}"
