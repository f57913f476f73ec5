"""The tasks of all stages: one table of what Prefect has to know of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from prefect import Task

from curvote.chain.stage import Stage
from curvote.run.project import is_raw
from curvote.tasks.perform import OPTIONS, perform

# How many hours a stage may take; one that does not stand here may take the most.
HOURS = {
    "ingest": 1,
    "project": 1,
    "privatize": 2,
    "train": 4,
    "evaluate": 2,
    "aggregate": 1,
    "report": 1,
}


def task_of(stage: Stage) -> Task[..., Any]:
    """Return the task that is named after a stage and tagged with its side."""
    return _task(stage.name, _tag(stage.side))


@cache
def _task(name: str, tag: str) -> Task[..., Any]:
    seconds = 3600 * HOURS.get(name, max(HOURS.values()))
    return Task(perform, name=name, tags=[tag], timeout_seconds=seconds, **OPTIONS)


def _tag(side: str) -> str:
    """Return "client", "server", or "release" where something leaves a client."""
    if is_raw(side):
        return "client"
    return "release" if side.startswith("client") else "server"
