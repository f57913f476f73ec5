"""Reproductions of tables and figures: entries, evidence of runs, papers and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from curvote.base.errors import InternalError
from curvote.data import raw_files
from curvote.papers import rows as words
from curvote.papers.rows import Row
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import labels_by_setting
from curvote.pipeline.run.results import mean_scores, missing_to_none, replicate_scores
from curvote.pipeline.store.records import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    table, document = words.to_csv(rows), words.to_json(rows).encode()
    content = {"comparison.csv": table, "comparison.json": document}
    for file, data in extra_files.items():
        content[file if "." in file else f"{name}.{file}"] = data
    return [write_atomically(folder / file, data) for file, data in content.items()]


Labels = Mapping[str | None, Mapping[str, str]]
Refine = Callable[[RunRecord, list[Row], pd.DataFrame], list[Row]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The score rows of a reproduction's runs, and scores by replicate.

    ``replicates`` has the columns of `curvote.pipeline.run.results.replicate_scores`
    and one for each axis of the pipelines' grids; ``configs`` are the runs'
    configurations, ``project`` is where raw files are found.
    """

    summaries: list[Row]
    replicates: pd.DataFrame
    configs: list[dict[str, Any]] = field(default_factory=list)
    project: Project | None = None


def collect_evidence(
    project: Project,
    records: Iterable[RunRecord],
    refine: Refine = lambda _, rows, __: rows,
) -> Evidence:
    """Return the scores of the completed runs of a reproduction.

    ``refine`` makes a wing's rows of a run's record, its rows of `mean_scores` and its
    single scores. Without runs everything is empty.
    """
    runs = list(records)
    summaries: list[Row] = []
    parts = [pd.DataFrame()]
    for record in runs:
        table = replicate_scores(project, record)
        summaries += refine(record, mean_scores(project, record), table)
        parts.append(add_axes(table, labels_by_setting(record.config)))
    together = pd.concat(parts[1:] or parts, ignore_index=True)
    return Evidence(summaries, together, [record.config for record in runs], project)


def add_axes(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Add a column for each axis of a grid: the label of a row's setting."""
    axes = sorted({axis for axis_labels in labels.values() for axis in axis_labels})
    of_rows = [labels[missing_to_none(setting)] for setting in table["setting"]]
    named: dict[str, Any] = {axis: [of.get(axis) for of in of_rows] for axis in axes}
    return table.assign(**named)


def evidence_project(name: str, evidence: Evidence | None) -> Project:
    """Return the project that holds the tables of ``name``."""
    if evidence is None or evidence.project is None:
        raise InternalError(f"{name} reads published files: it needs a project")
    return evidence.project


def load_columns(project: Project, data_set: Any, parameters: Any) -> dict[str, Any]:
    """Return the columns of a public data set, from a project's raw files."""
    located = {
        name: raw_files.locate(project.root, name)
        for name in data_set.files(parameters)
    }
    paths = {name: file.path for name, file in located.items() if file}
    columns: dict[str, Any] = data_set.clients(parameters, paths)
    return columns


def draw_files(
    name: str,
    draw: Callable[..., Figure],
    rows: Sequence[Row],
    *kinds: str,
    evidence: Evidence | None = None,
) -> dict[str, bytes]:
    """Return a figure as ``svg``, ``png``: the same rows give the same bytes.

    ``draw`` makes it of ``rows``, and of what they were ``evidence`` from.
    """
    import matplotlib as mpl

    from curvote.report.figures import figure_bytes
    from curvote.report.style import RC

    with mpl.rc_context({**RC, "svg.hashsalt": name}):
        figure = draw(rows, evidence)
        return {kind: figure_bytes(figure, kind) for kind in kinds}


@dataclass(frozen=True)
class Entry(Reproduction):
    """A table or figure that functions of its paper's package make.

    ``place`` ("hospitals:pair") is their module, and what their names begin with:
    ``pair_rows(name, evidence)`` makes rows of the `Evidence` of its pipelines (empty
    where it has none: the rows are computed at once), ``pair_figure(rows, evidence)``
    draws them, ``pair_conclusions(rows)`` are the last words of the command, and
    ``pair_terminal_rows(rows)``, if there is one, is what it shows of them if not all.
    ``across`` is the column whose values are columns of the terminal.
    """

    place: str
    _: KW_ONLY
    across: str = "epsilon"


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
        rows: list[Row] = self.function(name, "rows")(name, gathered)
        draw = self.function(name, "figure")
        figure_files = draw_files(name, draw, rows, "svg", "png", evidence=gathered)
        return rows, write_files(output_folder(project, name), name, rows, figure_files)

    def laid_out(self, name: str, rows: Sequence[Row]) -> words.Lines:
        """Return a comparison as lines of text, and the shown columns."""
        shown_rows = self.function(name, "terminal_rows", list)(rows)
        return words.laid_out(shown_rows, self.entries[name].across)

    def agreement(self, name: str, rows: Sequence[Row]) -> Iterator[str]:
        """Yield the conclusions: the paper's statements and whether they hold."""
        yield ""
        yield from self.function(name, "conclusions")(rows)

    def function(
        self, name: str, kind: str, *default: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return an entry's function of a ``kind``: its rows, its figure."""
        module, _, stem = self.entries[name].place.partition(":")
        place = import_module(f"{self.package}.{module}")
        function: Callable[..., Any] = getattr(place, f"{stem}_{kind}", *default)
        return function
