"""Task of stage privatize: where reports leave the clients."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="privatize", tags=["release"], timeout_seconds=7200, **OPTIONS)
def privatize(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the noised reports."""
    return perform(context, step)
