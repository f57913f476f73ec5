"""Run context shared by all tasks, and errors without private text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from curvote.run.engines import Engine
from curvote.run.plan.step import Step
from curvote.run.project import Project

Progress = Callable[[Step, int, int], None]


@dataclass(frozen=True)
class TaskContext:
    """The project, engine and progress callback that all tasks of a run share."""

    project: Project
    engine: Engine
    block: int | None
    progress: Progress
