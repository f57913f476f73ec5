"""Files of an MRMA entry: rows as CSV and JSON, figure, page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from curvote.reproduce.gather import Evidence
from curvote.reproduce.mrma.figures import draw_entry
from curvote.reproduce.mrma.gather import mrma_evidence
from curvote.reproduce.mrma.names import REPRODUCTIONS
from curvote.reproduce.mrma.rows import comparison
from curvote.reproduce.rows import Row
from curvote.reproduce.write import output_folder, write_files
from curvote.run.history import RunRecord
from curvote.run.project import Project


def compare(
    project: Project, name: str, records: Iterable[RunRecord]
) -> tuple[list[Row], list[Path]]:
    """Return the rows of `reproduce NAME` from completed runs, and the files written.

    They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
    """
    gathered = mrma_evidence(project, records)
    rows = comparison(name, gathered.summaries)
    return rows, write_entry(name, rows, output_folder(project, name), gathered)


def write_entry(
    name: str,
    rows: Sequence[Row],
    folder: Path,
    evidence: Evidence | None = None,
) -> list[Path]:
    """Write comparison.csv, comparison.json and the figure; return their paths.

    A contest whose runs were ``evidence`` has a page as well, results.md.
    """
    extra_files = dict(draw_entry(name, rows, "svg", "png", evidence=evidence))
    if REPRODUCTIONS[name].contest and evidence and evidence.configs:
        extra_files = {
            "results.md": _results_page(rows, evidence).encode()
        } | extra_files
    return write_files(folder, name, rows, extra_files)


def _results_page(rows: Sequence[Row], evidence: Evidence) -> str:
    from curvote.reproduce.mrma.results import markdown

    seeds = {config["seed"] for config in evidence.configs}
    seed = seeds.pop() if len(seeds) == 1 else None
    return markdown(rows, evidence.configs[0]["replicates"], seed)
