"""The state of a project: latest runs, and whether what they stored is sound."""

from __future__ import annotations

from typing import Any

from curvote.run import records
from curvote.run.config.file import PipelinesFile
from curvote.run.history import RunRecord, latest
from curvote.run.project import Project
from curvote.run.store.artifacts import artifact


def overview(project: Project, *, content: bool) -> list[dict[str, Any]]:
    """Return one row a pipeline: latest run, its artifacts, and those that changed.

    First come the pipelines of the project's file, then others that ran here. Files are
    checked by size, or with ``content`` by SHA-256.
    """
    names = [*PipelinesFile(project).names(), *records.pipelines(project)]
    every = dict.fromkeys(names)
    return [_row(project, name, latest(project, name), content) for name in every]


def _row(
    project: Project, name: str, record: RunRecord | None, content: bool
) -> dict[str, Any]:
    found = _problems(project, record, content) if record else []
    altered = [f"{place}: {p}" for place, p in found if p and p != "missing"]
    sound = sum(problem is None for _, problem in found)
    counted = f"{sound} of {len(found)} sound" if found else ""
    return {
        "pipeline": name,
        "run": record.id if record else "",
        "status": record.status if record else "never run",
        "why": record.why if record else "",
        "started": record.started if record else "",
        "artifacts": "; ".join([counted, *altered]),
        "altered": altered,
    }


def _problems(
    project: Project, record: RunRecord, content: bool
) -> list[tuple[str, str | None]]:
    pairs = dict.fromkeys((step["stage"], step["key"]) for step in record.steps)
    return [
        (f"{stage}/{key}", artifact(project, stage, key).problem(content=content))
        for stage, key in pairs
    ]
