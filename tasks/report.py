"""Task of stage report: the true scores of a study."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="report", tags=["client"], timeout_seconds=3600, **OPTIONS)
def report(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the scores."""
    return perform(context, step)
