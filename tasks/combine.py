"""Task of stage combine: each server's final classifier."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="combine", tags=["server"], timeout_seconds=3600, **OPTIONS)
def combine(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the weights of the servers' classifiers."""
    return perform(context, step)
