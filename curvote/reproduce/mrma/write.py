"""The files of one reproduction: its rows as CSV and JSON, its figure, its page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from curvote.reproduce.gather import Evidence
from curvote.reproduce.mrma.figures import draw
from curvote.reproduce.mrma.gather import evidence
from curvote.reproduce.mrma.names import REPRODUCTIONS
from curvote.reproduce.mrma.rows import comparison
from curvote.reproduce.rows import Row
from curvote.reproduce.write import folder_of
from curvote.reproduce.write import write as write_files
from curvote.run.history import RunRecord
from curvote.run.project import Project


def compare(
    project: Project, name: str, records: Iterable[RunRecord]
) -> tuple[list[Row], list[Path]]:
    """Return the rows of `reproduce NAME` from completed runs, and the files written.

    They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
    """
    found = evidence(project, records)
    rows = comparison(name, found.summaries)
    return rows, write(name, rows, folder_of(project, name), found)


def write(
    name: str,
    rows: Sequence[Row],
    folder: Path,
    found: Evidence | None = None,
) -> list[Path]:
    """Write comparison.csv, comparison.json and the figure; return their paths.

    A contest whose runs were ``found`` has a page as well, results.md.
    """
    others = dict(draw(name, rows, "svg", "png", found=found))
    if REPRODUCTIONS[name].contest and found and found.configs:
        others = {"results.md": _page(rows, found).encode()} | others
    return write_files(folder, name, rows, others)


def _page(rows: Sequence[Row], found: Evidence) -> str:
    from curvote.reproduce.mrma.results import markdown

    seeds = {config["seed"] for config in found.configs}
    seed = seeds.pop() if len(seeds) == 1 else None
    return markdown(rows, found.configs[0]["replicates"], seed)
