"""Task of stage refine: the second round of reports, in whitened coordinates."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="refine", tags=["client"], timeout_seconds=3600, **OPTIONS)
def refine(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the noised directions."""
    return perform(context, step)
