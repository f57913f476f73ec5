"""Table of stage tasks: timeouts and tags by stage and side."""

from __future__ import annotations

from functools import cache
from typing import Any

from prefect import Task

from curvote.chain.stage import Stage
from curvote.run.project import is_client_side
from curvote.tasks.perform import TASK_OPTIONS, perform_step

# How many hours a stage may take; one that does not stand here may take the most.
MAX_HOURS = {
    "ingest": 1,
    "project": 1,
    "privatize": 2,
    "train": 4,
    "evaluate": 2,
    "aggregate": 1,
    "report": 1,
}


def stage_task(stage: Stage) -> Task[..., Any]:
    """Return the task that is named after a stage and tagged with its side."""
    return _cached_task(stage.name, _side_tag(stage.side))


@cache
def _cached_task(name: str, tag: str) -> Task[..., Any]:
    seconds = 3600 * MAX_HOURS.get(name, max(MAX_HOURS.values()))
    return Task(
        perform_step, name=name, tags=[tag], timeout_seconds=seconds, **TASK_OPTIONS
    )


def _side_tag(side: str) -> str:
    """Return the tag of a side: "client", "server", or "release"."""
    if is_client_side(side):
        return "client"
    return "release" if side.startswith("client") else "server"
