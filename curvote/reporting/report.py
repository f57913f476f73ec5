"""The report of a run; the same results are not drawn twice."""

from __future__ import annotations

import json
from pathlib import Path

from curvote.chain.registry import SYSTEMS
from curvote.durable import owner_folder
from curvote.errors import UserError
from curvote.run import audited
from curvote.run.config.source import given
from curvote.run.history import RunRecord
from curvote.run.loaded import need
from curvote.run.pages import PAGE, STAMP, folder_of
from curvote.run.plan import definitions, fingerprint
from curvote.run.project import Project
from curvote.run.results import systems_of
from curvote.run.store.artifacts import write_json


def report(project: Project, record: RunRecord) -> Path:
    """Return the path of a run's report, drawn anew only where it would differ.

    That of the latest completed run stands under its pipeline's name, an earlier one's
    in a folder of its own. UserError: what an earlier run stored is gone.
    """
    folder = folder_of(project, record)
    wanted = _digest(project, record)
    if _stamped(folder) != wanted:
        _draw(project, record, folder)
        write_json(folder / STAMP, {"digest": wanted, "run": record.id})
    return folder / PAGE


def _draw(project: Project, record: RunRecord, folder: Path) -> None:
    # The drawing imports seconds' worth of libraries: only when it is needed.
    from curvote.reporting.gather import page_data
    from curvote.reporting.page import render

    try:
        data = page_data(project, record)
    except UserError:
        need(project, record, [step["stage"] for step in record.steps])
        raise
    if record.config.get("mode") == "study" and given(record.config["source"]):
        owner_folder(folder)  # its scores count records that nobody published
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STAMP).unlink(missing_ok=True)
    render(data, folder)


def _digest(project: Project, record: RunRecord) -> str:
    keys = [(step["stage"], step["key"]) for step in record.steps]
    own = [f"curvote.reporting.{name}" for name in ("gather", "page")]
    told = [f"{SYSTEMS[one.name]}.system" for one in systems_of(record)]
    parts = [name for one in systems_of(record) for name in one.sections]
    code = definitions.of_code([*own, *told, *parts])
    templates = sorted(Path(__file__).parent.rglob("*.j2"))
    files = [fingerprint.of_file(path) for path in templates]
    verdict = audited.saved(project, record)
    return fingerprint.of_json([keys, record.overrides, code, files, verdict])


def _stamped(folder: Path) -> str | None:
    """Return the digest of the report that stands in ``folder`` whole."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = (folder / PAGE).is_file() and (folder / "figures").is_dir()
    return str(stamp["digest"]) if whole else None
