"""What every stage's task does: hand the step to the store, or say it is reused."""

from __future__ import annotations

from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from curvote.errors import InternalError, UserError
from curvote.run.execute import execute
from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef, artifact
from curvote.tasks.context import Context
from curvote.tasks.unsaid import unsaid


def _worth_retrying(_task: Any, _run: Any, state: State[Any]) -> bool:
    """A user error or a broken invariant would only repeat itself."""
    error = state.result(raise_on_failure=False)
    return not isinstance(error, UserError | InternalError)


# The store decides what is reused, never Prefect's cache.
OPTIONS: dict[str, Any] = {
    "cache_policy": NO_CACHE,
    "persist_result": False,
    "task_run_name": "{step.name}",
    "retries": 1,
    "retry_delay_seconds": 2,
    "retry_condition_fn": _worth_retrying,
}


def perform(context: Context, step: Step) -> ArtifactRef | State[ArtifactRef]:
    """Return the reference of a step's artifact; a reused one as a state named so."""
    if step.action == "reuse":
        return Completed(name="Reused", data=artifact(context.project, *step.id).ref)
    with unsaid():
        return execute(
            context.project,
            step,
            engine=context.engine,
            block=context.block,
            progress=lambda done, of: context.progress(step, done, of),
        )
