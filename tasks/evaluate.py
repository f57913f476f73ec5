"""Task of stage evaluate: where votes leave the clients."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="evaluate", tags=["release"], timeout_seconds=7200, **OPTIONS)
def evaluate(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the counts of noised votes."""
    return perform(context, step)
