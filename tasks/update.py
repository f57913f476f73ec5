"""Task of stage update: utilities and weights after an arrival, on the server."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="update", tags=["server"], timeout_seconds=3600, **OPTIONS)
def update(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the standing and the history."""
    return perform(context, step)
