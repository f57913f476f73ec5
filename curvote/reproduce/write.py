"""Files of a reproduction: rows as CSV and JSON, figure, page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from curvote.reproduce.rows import Row, to_csv, to_json
from curvote.run.project import Project


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
    from curvote.reporting.figures import (
        write_atomically as write_file,
    )  # imports matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "comparison.csv": to_csv(rows),
        "comparison.json": to_json(rows).encode(),
    }
    for file, data in extra_files.items():
        content[file if "." in file else f"{name}.{file}"] = data
    return [write_file(folder / file, data) for file, data in content.items()]
