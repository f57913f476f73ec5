"""What a run gives to all its tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from curvote.run.engines import Engine
from curvote.run.plan.step import Step
from curvote.run.project import Project

Progress = Callable[[Step, int, int], None]


@dataclass(frozen=True)
class Context:
    """The project, where blocks are computed, and whom to tell how far it is."""

    project: Project
    engine: Engine
    block: int | None
    progress: Progress
