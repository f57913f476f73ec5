"""Run objects for users, and the folders in which pages of runs stand."""

from __future__ import annotations

import json
from pathlib import Path

from curvote.run import records
from curvote.run.history import RunRecord, load_record
from curvote.run.project import Project

STAMP = "report.json"
PAGE = "report.html"


def page_folder(project: Project, record: RunRecord) -> Path:
    """Return the folder of a run's page; older runs have one of their own."""
    shared = project.reports / record.pipeline
    for run in records.newest_ids(project, record.pipeline, "completed"):
        last = load_record(project, run)
        if last and (last.sequence, last.id) > (record.sequence, record.id):
            return shared / record.id
    return shared


def find_page(project: Project, record: RunRecord) -> Path | None:
    """Return the page that was drawn of a run; None: there is none."""
    shared = project.reports / record.pipeline
    candidates = (folder / PAGE for folder in (shared / record.id, shared))
    return next((page for page in candidates if _is_page_of(page, record)), None)


def _is_page_of(page: Path, record: RunRecord) -> bool:
    try:
        stamp = json.loads((page.parent / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return page.is_file() and bool(stamp.get("run") == record.id)
