"""Papers whose tables and figures are a module each: rows, text, files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from curvote.reproduce import words, write
from curvote.reproduce.entry import Reproduction
from curvote.reproduce.gather import collect_evidence
from curvote.reproduce.rows import Row
from curvote.run.history import RunRecord
from curvote.run.project import Project


@dataclass(frozen=True)
class Entry(Reproduction):
    """A table or figure that a module of its paper's package makes.

    ``module`` holds ``rows(name, found)``, which makes rows of the `Evidence` of its
    pipelines (empty where it has none: the rows are computed at once),
    ``figure(rows, found)``, ``across``, the column whose values are columns of the
    terminal, ``brief(rows)``, what it shows of them, and ``said(rows)``, the last words
    of the command.
    """

    module: str


@dataclass(frozen=True)
class Paper:
    """The tables and figures of a paper's ``package``, by name."""

    package: str
    entries: Mapping[str, Entry]

    def compare(
        self, project: Project, name: str, records: Iterable[RunRecord]
    ) -> tuple[list[Row], list[Path]]:
        """Return the rows of `reproduce NAME` from completed runs, and files written.

        They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
        """
        gathered = collect_evidence(project, records)
        module = self._module(name)
        rows: list[Row] = module.rows(name, gathered)
        from curvote.reproduce.figures import draw_files  # imports matplotlib

        figure_files = draw_files(
            name, module.__name__, rows, "svg", "png", evidence=gathered
        )
        return rows, write.write_files(
            write.output_folder(project, name), name, rows, figure_files
        )

    def laid_out(self, name: str, rows: Sequence[Row]) -> words.Lines:
        """Return a comparison as lines of text, and the shown columns."""
        module = self._module(name)
        return words.laid_out(module.terminal_rows(rows), module.across)

    def agreement(self, name: str, rows: Sequence[Row]) -> Iterator[str]:
        """Yield the conclusions: the paper's statements and whether they hold."""
        yield ""
        yield from self._module(name).conclusions(rows)

    def _module(self, name: str) -> ModuleType:
        return import_module(f"{self.package}.{self.entries[name].module}")
