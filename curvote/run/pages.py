"""Where the pages of runs stand: the latest under its pipeline's name."""

from __future__ import annotations

import json
from pathlib import Path

from curvote.run import records
from curvote.run.history import RunRecord, load
from curvote.run.project import Project

STAMP = "report.json"
PAGE = "report.html"


def folder_of(project: Project, record: RunRecord) -> Path:
    """Return where a run's page stands: a folder of its own once a later one is."""
    shared = project.reports / record.pipeline
    for run in records.newest(project, record.pipeline, "completed"):
        last = load(project, run)
        if last and (last.sequence, last.id) > (record.sequence, record.id):
            return shared / record.id
    return shared


def page_of(project: Project, record: RunRecord) -> Path | None:
    """Return the page that was drawn of a run; None where there is none any more."""
    shared = project.reports / record.pipeline
    found = (folder / PAGE for folder in (shared / record.id, shared))
    return next((page for page in found if _is_of(page, record)), None)


def _is_of(page: Path, record: RunRecord) -> bool:
    try:
        stamp = json.loads((page.parent / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return page.is_file() and bool(stamp.get("run") == record.id)
