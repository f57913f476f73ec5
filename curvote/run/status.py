"""The state of a project: latest runs, and whether what they stored is sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from curvote.run import records
from curvote.run.config.about import ELSEWHERE, SCHEDULED, About, pipelines
from curvote.run.config.file import PipelinesFile
from curvote.run.history import RunRecord, latest, loaded, under_way
from curvote.run.project import Project
from curvote.run.store.artifacts import artifact

# Says whether the process that an owner names is there.
IsAlive = Callable[[str], bool]


def overview(
    project: Project, *, content: bool, is_alive: IsAlive = bool
) -> list[dict[str, Any]]:
    """Return one row a pipeline: latest run, its artifacts, and those that changed.

    First come the pipelines of the project's file, group after group, then others that
    ran here. Files are checked by size and date, or with ``content`` by SHA-256.
    Those on a schedule have the start of their last success beside the last try.
    """
    every = {about.name: about for about in pipelines(PipelinesFile(project))}
    for name in records.pipelines(project):
        every.setdefault(name, About(name, ELSEWHERE))
    return [_row(project, about, content, is_alive) for about in every.values()]


def state_of(project: Project, record: RunRecord, is_alive: IsAlive) -> str:
    """Return how a run ended; one whose process is gone was killed, told or not."""
    if record.status != "running":
        return record.status
    there = under_way(project, record.id, record.owner, is_alive)
    return "running" if there else "killed"


def _row(
    project: Project, about: About, content: bool, is_alive: IsAlive
) -> dict[str, Any]:
    record = latest(project, about.name)
    found = _problems(project, record, content) if record else []
    altered = [f"{place}: {p}" for place, p in found if p and p != "missing"]
    sound = sum(problem is None for _, problem in found)
    counted = f"{sound} of {len(found)} sound" if found else ""
    scheduled = about.group == SCHEDULED
    return {
        "pipeline": about.name,
        "group": about.group,
        "description": about.description,
        "run": record.id if record else "",
        "status": state_of(project, record, is_alive) if record else "never run",
        "why": record.why if record else "",
        "started": record.started if record else "",
        "last_success": _last_success(project, about.name) if scheduled else "",
        "artifacts": "; ".join([counted, *altered]),
        "altered": altered,
    }


def _last_success(project: Project, name: str) -> str:
    done = loaded(project, lambda: records.newest(project, name, "completed"))
    return (done[-1].finished or done[-1].started) if done else "none"


def _problems(
    project: Project, record: RunRecord, content: bool
) -> list[tuple[str, str | None]]:
    pairs = dict.fromkeys((step["stage"], step["key"]) for step in record.steps)
    return [
        (f"{stage}/{key}", artifact(project, stage, key).problem(content=content))
        for stage, key in pairs
    ]
