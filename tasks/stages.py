"""Prefect tasks of all stages, and of the report."""

from functools import cache
from typing import Any

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from curvote.base.errors import InternalError, UserError
from curvote.chain.axis import Cell
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


@cache
def stage_task(name: str) -> Task[..., Any]:
    """Return the task that is named after a stage.

    It has no tags: of a task with some Prefect warns that they could wait for each
    other for ever. A task run gets them where it is submitted.
    """
    return Task(perform_step, name=name, **TASK_OPTIONS)


def step_tags(step: Step, *, with_cell: bool) -> list[str]:
    """Return the tags of a step's task run: its side, or also stage and cell.

    The side of what leaves clients is ``release``. Of each set of tags that it has not
    met Prefect asks the server for limits: 40 ms.
    """
    side = step.stage.side
    released = "release" if side.startswith("client") else "server"
    pairs: dict[str, Any] = {"side": "client" if is_client_side(side) else released}
    if with_cell:
        pairs |= {"stage": step.stage.name, **step.cell.to_json()}
    return [str(Cell((pair,))) or "=".join(map(str, pair)) for pair in pairs.items()]


@task(name="page", **TASK_OPTIONS | {"task_run_name": "page"})
def page(context: TaskContext, record: RunRecord) -> str:
    """Write the HTML report and its figures; return the page's path."""
    from curvote.report.page import draw_report

    with redaction():
        return str(draw_report(context.project, record))
