"""Report of a run, which is drawn anew only if its data or code changed."""

from __future__ import annotations

import json
from pathlib import Path

from curvote.chain.registry import SYSTEMS
from curvote.durable import private_folder
from curvote.errors import UserError
from curvote.run import audited
from curvote.run.config.source import reads_user_file
from curvote.run.history import RunRecord
from curvote.run.loaded import require_artifacts
from curvote.run.pages import PAGE, STAMP, page_folder
from curvote.run.plan import definitions, fingerprint
from curvote.run.project import Project
from curvote.run.results import run_systems
from curvote.run.store.artifacts import write_json


def draw_report(project: Project, record: RunRecord) -> Path:
    """Return the path of a run's report, drawn anew if it would differ.

    That of the latest completed run stands under its pipeline's name, an earlier one's
    in a folder of its own. UserError: what an earlier run stored is gone.
    """
    folder = page_folder(project, record)
    digest = _report_digest(project, record)
    if _stamped_digest(folder) != digest:
        _draw_page(project, record, folder)
        write_json(folder / STAMP, {"digest": digest, "run": record.id})
    return folder / PAGE


def _draw_page(project: Project, record: RunRecord, folder: Path) -> None:
    # The drawing imports seconds' worth of libraries: only when it is needed.
    from curvote.reporting.gather import load_page_data
    from curvote.reporting.page import render_report

    try:
        data = load_page_data(project, record)
    except UserError:
        require_artifacts(project, record, [step["stage"] for step in record.steps])
        raise
    if record.config.get("mode") == "study" and reads_user_file(
        record.config["source"]
    ):
        private_folder(folder)  # its scores count records that nobody published
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STAMP).unlink(missing_ok=True)
    render_report(data, folder)


def _report_digest(project: Project, record: RunRecord) -> str:
    keys = [(step["stage"], step["key"]) for step in record.steps]
    loader_modules = [f"curvote.reporting.{name}" for name in ("gather", "page")]
    system_modules = [
        f"{SYSTEMS[member.name]}.system" for member in run_systems(record)
    ]
    parts = [name for member in run_systems(record) for name in member.sections]
    code = definitions.of_code([*loader_modules, *system_modules, *parts])
    templates = sorted(Path(__file__).parent.rglob("*.j2"))
    files = [fingerprint.file_digest(path) for path in templates]
    verdict = audited.stored_verdicts(project, record)
    return fingerprint.json_digest([keys, record.overrides, code, files, verdict])


def _stamped_digest(folder: Path) -> str | None:
    """Return the digest of the complete report in ``folder``, else None."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_complete = (folder / PAGE).is_file() and (folder / "figures").is_dir()
    return str(stamp["digest"]) if is_complete else None
