"""The chain: every step of the plan in its order, whatever the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from prefect import Task, flow

from curvote.run.execute import DEFAULT_BLOCK
from curvote.run.planner import Selection
from flows.stages import RUNNER, Asked, planned


@flow(
    name="curvote",
    flow_run_name="{pipeline}",
    task_runner=RUNNER,
    validate_parameters=False,
)
def chain(
    pipeline: str,
    project: str,
    overrides: Sequence[str] = (),
    replicates: int | None = None,
    seed: int | None = None,
    only: str | None = None,
    start: str | None = None,
    force: Sequence[str] = (),
    new_release: bool = False,
    new_people: bool = False,
    workers: int | None = None,
    block: int = DEFAULT_BLOCK,
) -> str:
    """Run one pipeline and return the id of its run record."""
    chosen = Selection(only, start, tuple(force))
    new = new_release, new_people
    asked = Asked(overrides, replicates, seed, chosen, *new, workers, block)
    return perform(pipeline, project, asked)


def perform(pipeline: str, project: str, asked: Asked) -> str:
    """Do, inside a flow, what was asked; return the id of the run record."""
    with planned(pipeline, project, asked) as run:
        for step in run.plan.steps:
            run.submit(_task(step.stage.name), step)
    return run.record.id


def _task(stage: str) -> Task[..., Any]:
    """Return the task of a stage: it stands under its name in a module of its name."""
    task: Task[..., Any] = getattr(import_module(f"tasks.{stage}"), stage)
    return task
