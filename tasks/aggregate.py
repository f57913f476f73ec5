"""Task of stage aggregate: utilities, reversal and weights from vote counts."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="aggregate", tags=["server"], timeout_seconds=3600, **OPTIONS)
def aggregate(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the ensemble."""
    return perform(context, step)
