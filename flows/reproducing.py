"""What `reproduce` does: run the pipelines, compare, and lay the rows out as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.datasets import raw, sources
from curvote.errors import Problem, UserError
from curvote.reporting.reproduce.contest import by_setting, cells, lines
from curvote.reporting.reproduce.names import Reproduction
from curvote.reporting.reproduce.rows import agreeing, with_error
from curvote.run.config.file import PipelinesFile
from curvote.run.config.schema import Pipeline
from curvote.run.config.source import Absent, files_of, raw_files
from curvote.run.project import Project

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
    asked = [file.configured(name, **fixed).pipeline for name in entry.pipelines]
    with redirect_stdout(sys.stderr):
        _fetch(project, entry, asked)
        records = list(_runs(project, entry, given))
        from curvote.reporting.reproduce.write import compare

        return compare(project, entry.name, records)


def _runs(
    project: Project, entry: Reproduction, given: dict[str, Any]
) -> Iterator[RunRecord]:
    from flows.running import completed_run

    n = len(entry.pipelines)
    for rank, name in enumerate(entry.pipelines, start=1):
        if n > 1:
            print(f"{name} ({rank} of {n})", file=sys.stderr, flush=True)
        yield completed_run(project, {"pipeline": name, **given})


def _fetch(project: Project, entry: Reproduction, asked: Iterable[Pipeline]) -> None:
    """Fetch all files before the first run: what cannot be had is told at once."""
    problems: list[Problem] = []
    absent: list[str] = []
    for pipeline in {files_of(pipeline): pipeline for pipeline in asked}.values():
        try:
            raw_files(project, pipeline, fetch=True)
        except UserError as error:
            problems += error.problems
            absent += _absent(project, pipeline)
    if absent:
        problems.append(Problem(_what_to_put(project, entry, dict.fromkeys(absent))))
    if problems:
        raise UserError.several(problems)


def _absent(project: Project, pipeline: Pipeline) -> tuple[str, ...]:
    try:
        found = raw_files(project, pipeline, fetch=False)
    except UserError:  # a file is here, but damaged: that has been told
        return ()
    return found.names if isinstance(found, Absent) else ()


def _what_to_put(project: Project, entry: Reproduction, names: Iterable[str]) -> str:
    known = sources.catalogue(project.root)
    files = ", ".join(f"{known[name].file} ({known[name].url})" for name in names)
    return (
        f"{entry.name} needs {files}: put them into {raw.raw_folder(project.root)} or"
        f" a folder that {raw.MIRROR} names, then repeat the command."
    )


def agreement(entry: Reproduction, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the last words: how many cells agree or hold, and which are worst."""
    yield from _contested(rows) if entry.contest else _agreed(entry, rows)
    yield "\nwritten:"


def _contested(rows: Sequence[Row]) -> Iterator[str]:
    from curvote.reporting.reproduce.results import counts, told

    judged = cells(rows)
    yield ""
    yield from counts(judged)
    yield from (f"lost: {told(cell)}" for cell in judged if cell.better)


def _agreed(entry: Reproduction, rows: Sequence[Row]) -> Iterator[str]:
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


def _difference(row: Row) -> float:
    return abs(float(row["curvote"] - row["published"]))


def laid_out(entry: Reproduction, rows: Sequence[Row]) -> Lines:
    """Return a comparison as lines of text and the columns to show.

    Where values are printed, a line a cell: paper, curvote with one standard error,
    corrected, z. Elsewhere a line a method, with a column for each epsilon; in a
    contest a line for what each protocol ends in.
    """
    if entry.contest:
        return _by_protocol(rows)
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
            "curvote": with_error(row),
            "corrected": _number(row["corrected"]),
            "z": "" if row["z"] is None else f"{row['z']:+.1f}",
        }
        for row in rows
    ]
    return lines, [*names, *values]


def _by_protocol(rows: Sequence[Row]) -> Lines:
    columns = _levels(rows)
    found = [
        {"setting": setting, "protocol": name, **dict.fromkeys(columns, "")}
        | {_level(row): with_error(row) for row in line}
        for setting, own in by_setting(rows).items()
        for name, line in lines(own).items()
    ]
    return found, ["setting", "protocol", *columns]


def _by_epsilon(rows: Sequence[Row]) -> Lines:
    names, columns = _varying(rows, _NAMES), _levels(rows)
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        named = _named(row, names)
        empty = named | dict.fromkeys(columns, "")
        found.setdefault(tuple(named.values()), empty)[_level(row)] = with_error(row)
    return list(found.values()), [*names, *columns]


def _varying(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    """Return the columns that tell rows apart."""
    return [name for name in names if len({row[name] for row in rows} - {None}) > 1]


def _named(row: Row, names: Iterable[str]) -> dict[str, str]:
    return {name: _text(row[name]) for name in names}


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _levels(rows: Sequence[Row]) -> list[str]:
    """Return the columns of the epsilons, rising, no privacy last."""
    return list(dict.fromkeys(_level(row) for row in sorted(rows, key=_privacy)))


def _level(row: Row) -> str:
    return "no privacy" if row["epsilon"] is None else f"epsilon {row['epsilon']:g}"


def _privacy(row: Row) -> float:
    return float("inf") if row["epsilon"] is None else row["epsilon"]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
