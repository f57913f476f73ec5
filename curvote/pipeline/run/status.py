"""Status of a project: latest runs, and whether their artifacts are sound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from curvote.pipeline.config import file
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.records import (
    RunRecord,
    is_running,
    latest_run,
    read_records,
)

# Says whether the process that an owner names is there.
IsAlive = Callable[[str], bool]


def project_status(
    project: Project, *, content: bool, is_alive: IsAlive = bool
) -> list[dict[str, Any]]:
    """Return a row for each pipeline: latest run, artifacts, altered files.

    First come the pipelines of the project's file, group after group, then others that
    ran here. Files are checked by size and date, or with ``content`` by SHA-256.
    Those on a schedule have the start of their last success beside the last try.
    """
    overviews = {
        about.name: about for about in file.list_pipelines(file.PipelinesFile(project))
    }
    for name in records.pipeline_names(project):
        overviews.setdefault(name, file.PipelineOverview(name, file.ELSEWHERE))
    return [
        _status_row(project, about, content, is_alive) for about in overviews.values()
    ]


def run_state(project: Project, record: RunRecord, is_alive: IsAlive) -> str:
    """Return the state of a run; a running one without its process was killed."""
    if record.status != "running":
        return record.status
    there = is_running(project, record.id, record.owner, is_alive)
    return "running" if there else "killed"


def _status_row(
    project: Project, about: file.PipelineOverview, content: bool, is_alive: IsAlive
) -> dict[str, Any]:
    record = latest_run(project, about.name)
    pairs = dict.fromkeys(
        (s["stage"], s["key"]) for s in (record.steps if record else ())
    )
    problems = [
        (f"{stage}/{key}", artifact(project, stage, key).problem(content=content))
        for stage, key in pairs
    ]
    altered = [f"{place}: {p}" for place, p in problems if p and p != "missing"]
    sound = sum(problem is None for _, problem in problems)
    counted = f"{sound} of {len(problems)} sound" if problems else ""
    success = ""
    if about.group == file.SCHEDULED:
        latest = partial(records.newest_ids, project, about.name, "completed")
        done = read_records(project, latest)
        success = (done[-1].finished or done[-1].started) if done else "none"
    return {
        "pipeline": about.name,
        "group": about.group,
        "description": about.description,
        "run": record.id if record else "",
        "status": run_state(project, record, is_alive) if record else "never run",
        "why": record.why if record else "",
        "started": record.started if record else "",
        "last_success": success,
        "artifacts": "; ".join([counted, *altered]),
        "altered": altered,
    }
