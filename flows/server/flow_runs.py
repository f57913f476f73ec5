"""Flow runs and deployments on a server: live runs are tagged, dead ones closed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from curvote.flows.environment import RUNNER_VARIABLE, is_alive, process_tag

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun, State


# A run that nobody tagged yet is given this long to come to its first line.
_UNTAGGED_GRACE = 120.0
PAGE_SIZE = 200  # more are not returned at once


def read_flow_runs(
    order: str = "ID_DESC", limit: int = PAGE_SIZE, offset: int = 0, **conditions: Any
) -> list[FlowRun]:
    """Return the flow runs of these conditions, as Prefect's filters take them."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.sorting import FlowRunSort

    wanted = FlowRunFilter.model_validate(conditions)
    with get_client(sync_client=True) as client:
        # The synchronous client sends its own defaults as null, which is refused.
        return client.read_flow_runs(
            flow_run_filter=wanted, sort=FlowRunSort[order], limit=limit, offset=offset
        )


def delete_deployments(
    client: SyncPrefectClient,
    tag: str,
    folders: Collection[str],
    kept_names: Collection[str],
) -> None:
    """Delete a tag's deployments of these projects, with their waiting runs.

    Those of ``kept_names`` stay.
    """
    from prefect.client.schemas.filters import DeploymentFilter
    from prefect.client.schemas.sorting import DeploymentSort

    tagged = DeploymentFilter.model_validate({"tags": {"all_": [tag]}})
    for deployment in client.read_deployments(
        deployment_filter=tagged, sort=DeploymentSort.NAME_ASC, limit=PAGE_SIZE
    ):
        in_project = deployment.parameters.get("project") in folders
        if in_project and deployment.name not in kept_names:
            client.delete_deployment(deployment.id)


def tag_flow_run() -> None:
    """Tag the current flow run with this process, so that no sweep closes it.

    To be called as the first line of a flow. A scheduled run has a process of its own,
    and also ends when ``curvote serve`` is killed.
    """
    from prefect.client.orchestration import get_client
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    run = context.flow_run
    with get_client(sync_client=True) as client:
        client.update_flow_run(run.id, tags={*run.tags, process_tag()})
    if run.deployment_id is not None:
        threading.Thread(target=_end_with_parent, daemon=True).start()


def close_dead_flow_runs() -> int:
    """Mark flow runs of dead processes as crashed; return their number."""
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed
    from prefect.types._datetime import now

    state: State[object] = Crashed(message="The process that ran this flow has ended.")
    unfinished = {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}
    stale = []
    for run in read_flow_runs(state=unfinished):
        owners = [tag for tag in run.tags if tag.startswith("pid:")]
        since = run.state.timestamp if run.state else run.updated
        age = (now("UTC") - since).total_seconds() if since else 0.0
        dead = not any(map(is_alive, owners)) if owners else age > _UNTAGGED_GRACE
        stale += [run.id] if dead else []
    with get_client(sync_client=True) as client:
        for run_id in stale:
            client.set_flow_run_state(run_id, state, force=True)
    return len(stale)


def _end_with_parent() -> None:
    # Named by the runner itself: it may have gone before this line was reached.
    parent = int(os.environ.get(RUNNER_VARIABLE) or os.getppid())
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(2)
    os._exit(1)
