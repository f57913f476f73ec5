"""The files of a reproduction: its rows as CSV and JSON, its figure, a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from curvote.reproduce.rows import Row, to_csv, to_json
from curvote.run.project import Project


def folder_of(project: Project, name: str) -> Path:
    """Return where the files of ``name`` stand: beside a report of that name."""
    return project.reports / name / "reproduce"


def write(
    folder: Path, name: str, rows: Sequence[Row], others: Mapping[str, bytes]
) -> list[Path]:
    """Write comparison.csv, comparison.json and ``others``; return their paths.

    A name among ``others`` that is a kind only (``svg``) is the figure of that kind.
    """
    from curvote.reporting.figures import write as write_file  # imports matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "comparison.csv": to_csv(rows),
        "comparison.json": to_json(rows).encode(),
    }
    for file, data in others.items():
        content[file if "." in file else f"{name}.{file}"] = data
    return [write_file(folder / file, data) for file, data in content.items()]
