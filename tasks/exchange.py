"""Task of stage exchange: classifiers go from server to server."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="exchange", tags=["server"], timeout_seconds=3600, **OPTIONS)
def exchange(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store what each server has of each, and why not of some."""
    return perform(context, step)
