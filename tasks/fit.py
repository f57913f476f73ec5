"""Task of stage fit: classifiers from what clients would never send (study)."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="fit", tags=["client"], timeout_seconds=14400, **OPTIONS)
def fit(context: Context, step: Step, label: str) -> ArtifactRef | State[ArtifactRef]:
    """Store the classifiers."""
    return perform(context, step)
