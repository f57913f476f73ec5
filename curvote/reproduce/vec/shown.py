"""What every table and figure of VEC goes through: rows, text, files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from curvote.reproduce import words, write
from curvote.reproduce.figures import draw
from curvote.reproduce.gather import evidence
from curvote.reproduce.rows import Row
from curvote.reproduce.vec.names import REPRODUCTIONS
from curvote.run.history import RunRecord
from curvote.run.project import Project


def compare(
    project: Project, name: str, records: Iterable[RunRecord]
) -> tuple[list[Row], list[Path]]:
    """Return the rows of `reproduce NAME` from completed runs, and the files written.

    They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
    """
    found = evidence(project, records)
    module = _module(name)
    rows: list[Row] = module.rows(name, found)
    drawn = draw(name, module.__name__, rows, "svg", "png", found=found)
    return rows, write.write(write.folder_of(project, name), name, rows, drawn)


def laid_out(name: str, rows: Sequence[Row]) -> words.Lines:
    """Return a comparison as lines of text and the columns to show."""
    module = _module(name)
    return words.laid_out(module.brief(rows), module.across)


def agreement(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the last words: what the paper says, and whether it is so."""
    yield ""
    yield from _module(name).said(rows)


def _module(name: str) -> ModuleType:
    return import_module(f"{__package__}.{REPRODUCTIONS[name].module}")
