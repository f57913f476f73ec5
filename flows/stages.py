"""What every flow does: plan, one task for each step, then the report and MLflow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from prefect import Task
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from curvote.errors import InternalError
from curvote.reproduce.lookup import file_of
from curvote.run import history
from curvote.run.config.file import PipelinesFile
from curvote.run.execute import DEFAULT_BLOCK
from curvote.run.history import RunRecord
from curvote.run.plan.step import Step
from curvote.run.planner import EVERYTHING, Plan, Selection, make_plan
from curvote.run.project import Project
from curvote.run.release.publishing import publish
from curvote.run.store.artifacts import ArtifactRef
from flows import tracking
from flows.display import display, tell_blocked, tell_choices, tell_published, tell_raw
from flows.environment import is_alive, process_tag
from flows.flow_runs import mark_alive
from tasks.page import page
from tasks.perform import Context

# One task at a time: a stage is already parallel inside (--workers).
RUNNER = cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner(max_workers=1))


@dataclass(frozen=True)
class Asked:
    """What the user asked for beside the pipeline; ``workers`` None: all processors."""

    overrides: Sequence[str] = ()
    replicates: int | None = None
    seed: int | None = None
    selection: Selection = EVERYTHING
    new_release: bool = False
    new_people: bool = False
    workers: int | None = None
    block: int = DEFAULT_BLOCK


@dataclass(frozen=True)
class Run:
    """A run that is going on: its plan, its record, and what was submitted so far."""

    plan: Plan
    record: RunRecord
    context: Context
    futures: dict[tuple[str, str], PrefectFuture[ArtifactRef]] = field(
        default_factory=dict
    )

    def stage(self, task: Task[..., Any]) -> None:
        """Submit every step of the stage that ``task`` is named after."""
        for step in self.plan.steps:
            if step.stage.name == task.name:
                self.submit(task, step)

    def submit(self, task: Task[..., Any], step: Step) -> None:
        """Submit one step, to start after its inputs; a blocked one is left out.

        It also starts after the step that makes what it shares with another cell.
        """
        if step.action == "blocked":
            return
        needed = (*step.sources.values(), step.id)
        before = [self.futures[i] for i in needed if i in self.futures]
        self.futures[step.id] = task.submit(
            self.context, step, step.name, wait_for=before
        )

    def finish(self) -> None:
        """Wait for everything, then draw the report of a whole run."""
        forgotten = [
            step.name
            for step in self.plan.steps
            if step.action != "blocked" and step.id not in self.futures
        ]
        if forgotten:
            raise InternalError(f"the flow has no task for {', '.join(forgotten)}")
        for future in self.futures.values():
            future.result()
        if self.plan.complete and not self.plan.blocked():
            page.submit(self.context, self.record, "page").result()


@contextmanager
def planned(pipeline: str, project: str, asked: Asked) -> Iterator[Run]:
    """Yield the run of a pipeline, for a flow to submit its steps; then finish it."""
    mark_alive()
    place = Project(Path(project))
    history.end_killed(place, is_alive)
    file = file_of(place, pipeline)
    plan = _plan(place, pipeline, asked, file)
    with file.placing(pipeline), _recorded(place, plan, asked) as run:
        yield run


def _plan(project: Project, pipeline: str, asked: Asked, file: PipelinesFile) -> Plan:
    configured = file.configured(
        pipeline, asked.overrides, replicates=asked.replicates, seed=asked.seed
    )
    with file.placing(pipeline):
        return make_plan(
            project,
            configured,
            asked.selection,
            fetch=True,
            new_release=asked.new_release,
            new_people=asked.new_people,
        )


@contextmanager
def _recorded(project: Project, plan: Plan, asked: Asked) -> Iterator[Run]:
    tell_raw(plan)
    tell_choices(plan)
    record = history.begin(project, plan.configured, plan.steps, process_tag())
    status = "interrupted"  # Ctrl-C, or Prefect's own way to end a process
    try:
        with display(plan) as show:
            workers = asked.workers or os.cpu_count() or 1
            run = Run(plan, record, Context(project, workers, asked.block, show))
            yield run
            run.finish()
        status = _status(project, plan)
    except Exception:
        status = "failed"
        raise
    finally:
        history.finish(project, record, status)
    tracking.repair(project)


def _status(project: Project, plan: Plan) -> str:
    """Return how the run ended; before that, publish what open rounds wait for."""
    tell_published(publish(project, plan.configured, plan.steps))
    if not plan.blocked():
        return "completed" if plan.complete else "partial"
    tell_blocked(plan)
    return "blocked"
