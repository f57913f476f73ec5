"""Reproductions of tables and figures: an entry, the evidence of its runs, its files.

The file entries.toml of a paper's package declares its entries by name, with the
fields of `Entry`. Printed numbers stand in ``published/``, pipelines in pipelines.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pandas as pd

from curvote.data import raw_files
from curvote.messages.measures import NONE_PASSED
from curvote.papers import rows as tables
from curvote.papers.rows import Row
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import labels_by_setting
from curvote.pipeline.run.results import mean_scores, missing_to_none, replicate_scores
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
class Entry:
    """One published table or figure of a paper's ``package``, or a contest.

    ``place`` ("hospitals:pair") is a module of the package, and what the names of its
    functions begin with; what an entry has not of its own is the module's, without the
    beginning: ``pair_rows(evidence, **options)`` or ``rows`` makes the rows,
    ``pair_figure(rows, evidence)`` draws them, ``pair_conclusions(rows, **limits)`` are
    the last words of the command. It may also have ``pair_terminal_rows(rows)``, the
    rows that the terminal shows if not all, or ``pair_lines(rows)``, these as text;
    ``pair_files(rows, evidence)``, further files by name; and ``refine(record, rows,
    scores)``, which makes the summaries of a run.

    ``runs`` are its pipelines, in order: None is one of the same name, () none at all
    (formulas alone). They are run ``replicates`` times unless the user says otherwise.
    ``quantity`` is one of ``QUANTITIES``, what its rows hold unless they say otherwise;
    ``measured`` says it in other words. ``across`` is the column whose values are
    columns of the terminal, and ``says`` opens the conclusions.
    """

    package: str
    name: str
    title: str
    place: str
    replicates: int = 1
    runs: Sequence[str] | None = None
    quantity: str = "misclassification"
    measured: str = ""
    across: str = "epsilon"
    says: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pipelines(self) -> tuple[str, ...]:
        """The pipelines to run, in order."""
        return (self.name,) if self.runs is None else tuple(self.runs)

    @property
    def heading(self) -> str:
        """The paper, the title and the measure."""
        paper = self.package.rpartition(".")[2].upper()
        measure = self.measured or QUANTITIES[self.quantity]
        error = ", ± one standard error" if self.pipelines else ""
        return f"{paper}, {self.title}: {measure}{error}"

    def function(self, kind: str, default: Callable[..., Any] | None = None) -> Any:
        """Return the entry's function of a ``kind``, else its module's."""
        module, _, stem = self.place.partition(":")
        place = import_module(f"{self.package}.{module}")
        shared = getattr(place, kind, default)
        return getattr(place, f"{stem}_{kind}", shared)

    def compare(
        self, project: Project, records: Iterable[RunRecord]
    ) -> tuple[list[Row], list[Path]]:
        """Return the rows of `reproduce NAME` from completed runs, and files written.

        They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
        """
        evidence = collect_evidence(self, project, records)
        rows = self.rows(evidence)
        folder = project.reports / self.name / "reproduce"
        return rows, self.write(folder, rows, evidence)

    def rows(self, evidence: Evidence) -> list[Row]:
        """Return the rows, with all columns."""
        return tables.complete_rows(self.function("rows")(evidence, **self.options))

    def draw(
        self, rows: Sequence[Row], evidence: Evidence, *kinds: str
    ) -> dict[str, bytes]:
        """Return the figure as ``svg``, ``png``: the same rows give the same bytes."""
        import matplotlib as mpl

        from curvote.report.figures import figure_bytes
        from curvote.report.style import RC

        with mpl.rc_context({**RC, "svg.hashsalt": self.name}):
            figure = self.function("figure")(rows, evidence)
            return {kind: figure_bytes(figure, kind) for kind in kinds}

    def write(
        self, folder: Path, rows: Sequence[Row], evidence: Evidence
    ) -> list[Path]:
        """Write comparison.csv, comparison.json, the figure and what else there is."""
        from curvote.report.figures import write_atomically  # imports matplotlib

        content = {
            "comparison.csv": tables.to_csv(rows),
            "comparison.json": tables.to_json(rows).encode(),
            **self.function("files", lambda *_: {})(rows, evidence),
        }
        for kind, picture in self.draw(rows, evidence, "svg", "png").items():
            content[f"{self.name}.{kind}"] = picture
        folder.mkdir(parents=True, exist_ok=True)
        return [write_atomically(folder / file, data) for file, data in content.items()]

    def laid_out(self, rows: Sequence[Row]) -> tables.Lines:
        """Return a comparison as lines of text, and the shown columns."""
        if lines := self.function("lines"):
            result: tables.Lines = lines(rows)
            return result
        return tables.laid_out(self.function("terminal_rows", list)(rows), self.across)

    def conclusions(self, rows: Sequence[Row]) -> Iterator[str]:
        """Yield an empty line and the conclusions, if there are any."""
        computed = self.function("conclusions", lambda _: ())(rows, **self.limits)
        if lines := [*self.says, *computed]:
            yield from ("", *lines)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The score rows of an entry's runs, and scores by replicate.

    ``replicates`` has the columns of `curvote.pipeline.run.results.replicate_scores`
    and one for each axis of the pipelines' grids; ``configs`` are the runs'
    configurations, ``project`` is where raw files are found.
    """

    entry: Entry
    project: Project
    summaries: list[Row] = field(default_factory=list)
    replicates: pd.DataFrame = field(default_factory=pd.DataFrame)
    configs: list[dict[str, Any]] = field(default_factory=list)


def collect_evidence(
    entry: Entry, project: Project, records: Iterable[RunRecord]
) -> Evidence:
    """Return the scores of the completed runs of ``entry``; without runs, none."""
    refine = entry.function("refine", lambda _, rows, __: rows)
    runs = list(records)
    summaries: list[Row] = []
    parts = []
    for record in runs:
        table = replicate_scores(project, record)
        table = table[table["metric"] != NONE_PASSED.name]
        summaries += refine(record, mean_scores(project, record), table)
        parts.append(add_axes(table, labels_by_setting(record.config)))
    replicates = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    configs = [record.config for record in runs]
    return Evidence(entry, project, summaries, replicates, configs)


Labels = Mapping[str | None, Mapping[str, str]]


def add_axes(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Add a column for each axis of a grid: the label of a row's setting."""
    axes = sorted({axis for axis_labels in labels.values() for axis in axis_labels})
    of_rows = [labels[missing_to_none(setting)] for setting in table["setting"]]
    named: dict[str, Any] = {axis: [of.get(axis) for of in of_rows] for axis in axes}
    return table.assign(**named)


def load_columns(project: Project, data_set: Any, parameters: Any) -> dict[str, Any]:
    """Return the columns of a public data set, from a project's raw files."""
    located = {
        name: raw_files.locate(project.root, name)
        for name in data_set.files(parameters)
    }
    paths = {name: file.path for name, file in located.items() if file}
    columns: dict[str, Any] = data_set.clients(parameters, paths)
    return columns
