"""Task of stage train: weak classifiers from reports, on the server's side."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="train", tags=["server"], timeout_seconds=14400, **OPTIONS)
def train(context: Context, step: Step, label: str) -> ArtifactRef | State[ArtifactRef]:
    """Store the weak classifiers."""
    return perform(context, step)
