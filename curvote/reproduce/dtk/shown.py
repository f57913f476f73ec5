"""Reproduction of DTK's entries: rows, text, files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from curvote.reproduce import words, write
from curvote.reproduce.dtk.names import REPRODUCTIONS
from curvote.reproduce.figures import draw_files
from curvote.reproduce.gather import collect_evidence
from curvote.reproduce.rows import Row
from curvote.run.history import RunRecord
from curvote.run.project import Project


def compare(
    project: Project, name: str, records: Iterable[RunRecord]
) -> tuple[list[Row], list[Path]]:
    """Return the rows of `reproduce NAME` from completed runs, and the files written.

    They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
    """
    gathered = collect_evidence(project, records)
    module = _entry_module(name)
    rows: list[Row] = module.rows(gathered)
    figure_files = draw_files(
        name, module.__name__, rows, "svg", "png", evidence=gathered
    )
    return rows, write.write_files(
        write.output_folder(project, name), name, rows, figure_files
    )


def laid_out(name: str, rows: Sequence[Row]) -> words.Lines:
    """Return a comparison as lines of text, and the shown columns."""
    return words.laid_out(_entry_module(name).terminal_rows(rows))


def agreement(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the conclusions: the paper's statements and whether they hold."""
    yield ""
    yield from _entry_module(name).conclusions(rows)


def _entry_module(name: str) -> ModuleType:
    return import_module(f"{__package__}.{REPRODUCTIONS[name].module}")
