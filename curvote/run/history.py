"""Records of runs: what was planned and done, kept beside the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from curvote.chain.axis import Cell
from curvote.durable import owner_folder
from curvote.errors import UserError
from curvote.run.config.file import Configured
from curvote.run.plan.step import Step
from curvote.run.project import Project
from curvote.run.store.artifacts import write_json


@dataclass(frozen=True)
class RunRecord:
    """One execution of a pipeline.

    ``status`` is running, completed, partial (``--only``), blocked (waits for
    envelopes), failed, interrupted or killed; ``owner`` names the process that runs it.
    """

    id: str
    pipeline: str
    started: str
    overrides: list[str]
    config: dict[str, Any]
    steps: list[dict[str, Any]]
    status: str = "running"
    finished: str | None = None
    mlflow_run: str | None = None
    owner: str = ""

    def keys(self, stage: str) -> list[tuple[Cell, str]]:
        """Return the (cell, key) pairs of one stage."""
        mine = (step for step in self.steps if step["stage"] == stage)
        return [(Cell.of(step["cell"]), step["key"]) for step in mine]


def begin(
    project: Project, configured: Configured, steps: Iterable[Step], owner: str
) -> RunRecord:
    """Write down a run that the process ``owner`` is about to start."""
    started = datetime.now(UTC)
    record = RunRecord(
        id=f"{started:%Y%m%d-%H%M%S-%f}",  # sorts by time
        pipeline=configured.name,
        started=started.isoformat(timespec="seconds"),
        overrides=list(configured.overrides),
        config=configured.values(),
        steps=[_planned(step) for step in steps],
        owner=owner,
    )
    return save(project, record)


def _planned(step: Step) -> dict[str, Any]:
    return {
        "stage": step.stage.name,
        "cell": step.cell.to_json(),
        "key": step.key,
        "action": step.action,
        "reason": step.reason,
    }


def finish(project: Project, record: RunRecord, status: str) -> RunRecord:
    """Write down how a run ended."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return save(project, replace(record, status=status, finished=now))


def end_killed(project: Project, is_alive: Callable[[str], bool]) -> None:
    """Write down which runs ended without a word: their process is gone."""
    for record in load_all(project):
        if record.status == "running" and not is_alive(record.owner):
            finish(project, record, "killed")


def save(project: Project, record: RunRecord) -> RunRecord:
    """Store a record; it replaces an earlier state of the same run."""
    owner_folder(project.state)
    path = _folder(project) / f"{record.id}.json"
    path.parent.mkdir(exist_ok=True)
    write_json(path, asdict(record))
    return record


def load_all(project: Project, pipeline: str | None = None) -> list[RunRecord]:
    """Return the records, oldest first; unreadable files are passed over."""
    found = [_read(path) for path in sorted(_folder(project).glob("*.json"))]
    known = [record for record in found if record is not None]
    return [r for r in known if pipeline is None or r.pipeline == pipeline]


def completed(project: Project, pipeline: str, run: str | None = None) -> RunRecord:
    """Return the latest completed run of a pipeline, or the one named ``run``."""
    done = [r for r in load_all(project, pipeline) if r.status == "completed"]
    wanted = [r for r in done if run in (None, r.id)]
    if wanted:
        return wanted[-1]
    if run and done:
        known = ", ".join(r.id for r in done[-5:])
        raise UserError(f"no completed run {run!r} of {pipeline}. The latest: {known}.")
    raise UserError(f"{pipeline} has no completed run; `curvote run {pipeline}` first.")


def latest_keys(project: Project, pipeline: str) -> dict[tuple[str, str], str]:
    """Return the key that each (stage, cell) had when it was last planned."""
    latest: dict[tuple[str, str], str] = {}
    for record in load_all(project, pipeline):
        for step in record.steps:
            latest[step["stage"], str(Cell.of(step["cell"]))] = step["key"]
    return latest


def _folder(project: Project) -> Path:
    return project.state / "runs"


def _read(path: Path) -> RunRecord | None:
    try:
        return RunRecord(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
