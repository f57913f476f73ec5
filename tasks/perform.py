"""Prefect tasks of all stages, and of the report."""

from __future__ import annotations

from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from curvote.errors import InternalError, UserError
from curvote.run.execute import execute_step
from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef, artifact
from curvote.tasks.context import TaskContext
from curvote.tasks.unsaid import redaction


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
