"""Task of stage project: curves become coefficients by public constants."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="project", tags=["client"], timeout_seconds=3600, **OPTIONS)
def project(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the encoded clients."""
    return perform(context, step)
