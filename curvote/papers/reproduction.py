"""Reproductions of tables and figures: entries, papers, comparison and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from curvote.papers import rows as words
from curvote.papers.evidence import collect_evidence
from curvote.papers.rows import Row, to_csv, to_json
from curvote.pipeline.config.project import Project
from curvote.pipeline.store.records import RunRecord

# What a row may hold, and how the terminal says it. All but a ``value`` are shares,
# in percent; a value is in the unit of what it is a value of.
QUANTITIES: Final = {
    "misclassification": "misclassification in %",
    "accuracy": "accuracy in %",
    "f1": "F1 in %",
    "agreement": "agreement with the clean answer in %",
    "indicator": "agreement behind the paper's privacy indicator in %",
    "concentration": "probability that the output is near the value in %",
    "share": "share in %",
    "value": "value",
}


@dataclass(frozen=True)
class Reproduction:
    """One published table or figure of a ``paper``, or a contest.

    ``runs`` are its pipelines, in order: None is one of the same name, () none at all
    (formulas alone). They are run ``replicates`` times unless the user says otherwise.
    ``quantity`` is one of ``QUANTITIES``, what its rows hold unless they say otherwise;
    ``measured`` says it in other words.
    """

    name: str
    title: str
    replicates: int
    _: KW_ONLY
    paper: str
    runs: tuple[str, ...] | None = None
    quantity: str = "misclassification"
    measured: str = ""

    @property
    def pipelines(self) -> tuple[str, ...]:
        """The pipelines to run, in order."""
        return (self.name,) if self.runs is None else self.runs

    @property
    def heading(self) -> str:
        """The paper, the title and the measure."""
        measure = self.measured or QUANTITIES[self.quantity]
        error = ", ± one standard error" if self.pipelines else ""
        return f"{self.paper}, {self.title}: {measure}{error}"


def output_folder(project: Project, name: str) -> Path:
    """Return the folder of a reproduction's files, beside its report."""
    return project.reports / name / "reproduce"


def write_files(
    folder: Path, name: str, rows: Sequence[Row], extra_files: Mapping[str, bytes]
) -> list[Path]:
    """Write comparison.csv, comparison.json and other files; return their paths.

    A name among ``extra_files`` that is a kind only (``svg``) is the figure of that
    kind.
    """
    from curvote.report.figures import write_atomically  # imports matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    table, document = to_csv(rows), to_json(rows).encode()
    content = {"comparison.csv": table, "comparison.json": document}
    for file, data in extra_files.items():
        content[file if "." in file else f"{name}.{file}"] = data
    return [write_atomically(folder / file, data) for file, data in content.items()]


@dataclass(frozen=True)
class Entry(Reproduction):
    """A table or figure that a module of its paper's package makes.

    ``module`` holds ``rows(name, evidence)``, which makes rows of the `Evidence` of its
    pipelines (empty where it has none: the rows are computed at once),
    ``figure(rows, evidence)`` and ``conclusions(rows)``, the last words of the command.
    It may hold ``across``, the column whose values are columns of the terminal if not
    epsilon, and ``terminal_rows(rows)``, what it shows of them if not all.
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
        from curvote.papers.drawing import draw_files  # imports matplotlib

        figure_files = draw_files(
            name, module.__name__, rows, "svg", "png", evidence=gathered
        )
        return rows, write_files(output_folder(project, name), name, rows, figure_files)

    def laid_out(self, name: str, rows: Sequence[Row]) -> words.Lines:
        """Return a comparison as lines of text, and the shown columns."""
        module = self._module(name)
        shown_rows = getattr(module, "terminal_rows", list)(rows)
        return words.laid_out(shown_rows, getattr(module, "across", "epsilon"))

    def agreement(self, name: str, rows: Sequence[Row]) -> Iterator[str]:
        """Yield the conclusions: the paper's statements and whether they hold."""
        yield ""
        yield from self._module(name).conclusions(rows)

    def _module(self, name: str) -> ModuleType:
        return import_module(f"{self.package}.{self.entries[name].module}")
