"""Prefect tasks of all stages, and of the report."""

from functools import cache
from typing import Any

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from curvote.base.errors import InternalError, UserError
from curvote.chain.stage import Stage
from curvote.pipeline.config.project import is_client_side
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.store.artifacts import ArtifactRef, artifact
from curvote.pipeline.store.records import RunRecord
from curvote.tasks.context import TaskContext, redaction


def _worth_retrying(_task: Any, _run: Any, state: State[Any]) -> bool:
    """Return whether a retry may help: not for user errors or broken invariants."""
    error = state.result(raise_on_failure=False)
    return not isinstance(error, UserError | InternalError)


# The store decides what is reused, never Prefect's cache.
TASK_OPTIONS: dict[str, Any] = {
    "cache_policy": NO_CACHE,
    "persist_result": False,
    "task_run_name": "{step.name}",
    "retries": 1,
    "retry_delay_seconds": 2,
    "retry_condition_fn": _worth_retrying,
}


def perform_step(context: TaskContext, step: Step) -> ArtifactRef | State[ArtifactRef]:
    """Return a step's artifact reference, a reused one as a Prefect state."""
    if step.action == "reuse":
        return Completed(name="Reused", data=artifact(context.project, *step.id).ref)
    with redaction():
        return execute_step(
            context.project,
            step,
            engine=context.engine,
            block=context.block,
            progress=lambda done, of: context.progress(step, done, of),
        )


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
    tag = "release" if stage.side.startswith("client") else "server"
    return _cached_task(stage.name, "client" if is_client_side(stage.side) else tag)


@cache
def _cached_task(name: str, tag: str) -> Task[..., Any]:
    seconds = 3600 * MAX_HOURS.get(name, max(MAX_HOURS.values()))
    return Task(
        perform_step, name=name, tags=[tag], timeout_seconds=seconds, **TASK_OPTIONS
    )


_PAGE_OPTIONS: dict[str, Any] = TASK_OPTIONS | {"task_run_name": "page"}


@task(name="page", tags=["report"], timeout_seconds=1800, **_PAGE_OPTIONS)
def page(context: TaskContext, record: RunRecord) -> str:
    """Write the HTML report and its figures; return the page's path."""
    from curvote.report.page import draw_report

    with redaction():
        return str(draw_report(context.project, record))
