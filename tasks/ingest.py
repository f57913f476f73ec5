"""Task of stage ingest: the source becomes the table of clients."""

from __future__ import annotations

from prefect import task
from prefect.client.schemas.objects import State

from curvote.run.plan.step import Step
from curvote.run.store.artifacts import ArtifactRef
from tasks.perform import OPTIONS, Context, perform


@task(name="ingest", tags=["client"], timeout_seconds=3600, **OPTIONS)
def ingest(
    context: Context, step: Step, label: str
) -> ArtifactRef | State[ArtifactRef]:
    """Store the clients' curves."""
    return perform(context, step)
