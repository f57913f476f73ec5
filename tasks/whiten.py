"""Task of stage whiten: centre and whitening from a first round of reports."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="whiten", tags=["server"], timeout_seconds=3600, **OPTIONS)
def whiten(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the coordinates of the second round."""
    return perform(context, step)
