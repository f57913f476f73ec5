"""Runner of schedules: deployments in Prefect's server, and its own process."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from curvote.flows.serving.firing import firing_times, firing_times_between, to_prefect

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.objects import FlowRun
    from prefect.runner import Runner

_DEPLOYMENT_TAG = "curvote"
_PAGE_SIZE = 200  # more are not returned at once
# Missed firings that are counted: of each minute those of two months, in 17 seconds.
MAX_MISSED = 100_000
_ONE_SECOND = timedelta(seconds=1)
_ONE_HOUR = timedelta(hours=1)
_SCHEDULED_STATE = {"type": {"any_": ["SCHEDULED"]}}


def register_schedules(
    runner: Runner,
    flow: Flow[..., Any],
    project: str,
    schedules: Mapping[str, Mapping[str, Any]],
) -> dict[str, UUID]:
    """Register the flow for each schedule; delete the project's other deployments.

    Whatever a deployment was changed to meanwhile is put right again.
    """
    from prefect.types.entrypoint import EntrypointType

    _delete_other_deployments(project, schedules)
    ids: dict[str, UUID] = {}
    for name, settings in schedules.items():
        # The flow itself, not its place: whatever the server is told to run instead
        # of it, or before it, is never looked at.
        deployment_id = runner.add_flow(
            flow,
            name,
            schedule=to_prefect(settings),
            parameters={"pipeline": name, "project": project},
            tags=[_DEPLOYMENT_TAG],
            paused=False,
            # Imported by name, so it is found from whatever folder this runs in.
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        ids[name] = cast("UUID", deployment_id)  # outside of an event loop
    return ids


def _delete_other_deployments(project: str, keep: Mapping[str, Any]) -> None:
    """Delete this project's other deployments, with their waiting runs."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import DeploymentFilter
    from prefect.client.schemas.sorting import DeploymentSort

    ours = DeploymentFilter.model_validate({"tags": {"all_": [_DEPLOYMENT_TAG]}})
    with get_client(sync_client=True) as client:
        deployments = client.read_deployments(
            deployment_filter=ours, sort=DeploymentSort.NAME_ASC, limit=_PAGE_SIZE
        )
        for deployment in deployments:
            in_project = deployment.parameters.get("project") == project
            if in_project and deployment.name not in keep:
                client.delete_deployment(deployment.id)


def missed_firings(
    deployment: UUID, settings: Mapping[str, Any], since: str, until: datetime
) -> dict[str, Any] | None:
    """Return ``{count, first, last}`` of the firings without a run; None: none.

    Of a schedule that fires so often that there are over ``MAX_MISSED``, the latest are
    counted: ``count`` is at least that then.
    """
    after = datetime.fromisoformat(since)
    if settings.get("interval") is not None:
        after = max(after, until - MAX_MISSED * timedelta(seconds=settings["interval"]))
    started = {
        run.expected_start_time for run in _started_runs(deployment, after, until)
    }
    due = firing_times_between(settings, after, until)
    missed_times = deque(
        (at for at in due if at not in started and at < until), MAX_MISSED
    )
    if not missed_times:
        return None
    first, last = missed_times[0].isoformat(), missed_times[-1].isoformat()
    return {"count": len(missed_times), "first": first, "last": last}


def await_scheduler(
    deployment: UUID, settings: Mapping[str, Any], seconds: float = 8.0
) -> datetime:
    """Return the time from which Prefect's scheduler fires a deployment.

    It looks at a new deployment within a second or two, and never back.
    """
    end = time.monotonic() + seconds
    while firing_times(settings, after=_now(), until=_now() + _ONE_HOUR, count=1):
        first = _first_waiting_time(deployment)
        if first is not None:
            return first
        if time.monotonic() > end:
            break
        time.sleep(0.3)
    return _now()


def _first_waiting_time(deployment: UUID) -> datetime | None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    wanted = _run_filter(
        [deployment], expected_start_time={"after_": _now()}, state=_SCHEDULED_STATE
    )
    with get_client(sync_client=True) as client:
        waiting = client.read_flow_runs(
            flow_run_filter=wanted,
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=1,
        )
    return waiting[0].expected_start_time if waiting else None


def _started_runs(
    deployment: UUID, after: datetime, until: datetime
) -> Iterator[FlowRun]:
    """Yield the runs due between two times that were started."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    window = {"after_": after - _ONE_SECOND, "before_": until + _ONE_SECOND}
    wanted = _run_filter([deployment], expected_start_time=window)
    with get_client(sync_client=True) as client:
        for page in count():
            page_runs = client.read_flow_runs(
                flow_run_filter=wanted,
                sort=FlowRunSort.ID_DESC,
                limit=_PAGE_SIZE,
                offset=page * _PAGE_SIZE,
            )
            yield from (run for run in page_runs if not _is_waiting(run))
            if len(page_runs) < _PAGE_SIZE:
                return


def _is_waiting(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_scheduled()


def order_run(deployment: UUID) -> None:
    """Order one run of a deployment now."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        client.create_flow_run_from_deployment(deployment)


def delete_due_runs(ids: Sequence[UUID]) -> None:
    """Delete the scheduled runs that are waiting and due."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    if not ids:
        return
    with get_client(sync_client=True) as client:
        while True:
            due_runs = client.read_flow_runs(
                flow_run_filter=_late_filter(ids),
                sort=FlowRunSort.ID_DESC,
                limit=_PAGE_SIZE,
            )
            scheduled = [run for run in due_runs if run.auto_scheduled]
            for run in scheduled:
                client.delete_flow_run(run.id)
            if not scheduled:
                return


def pause_deployments(ids: Sequence[UUID]) -> None:
    """Pause deployments until all are registered again."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        for deployment in ids:
            with suppress(ObjectNotFound):  # of a database that was made anew
                client.pause_deployment(deployment)


async def delete_surplus_runs(ids: Sequence[UUID]) -> dict[str, int]:
    """Delete all late runs of deployments but the earliest; count them.

    The earliest keeps its place: with the latest, a pipeline whose firings always come
    due with those of others would never have its turn.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    late: dict[str, list[FlowRun]] = defaultdict(list)
    async with get_client() as client:
        due_runs = await client.read_flow_runs(
            flow_run_filter=_late_filter(ids),
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=_PAGE_SIZE,
        )
        for run in due_runs:
            if run.auto_scheduled:
                late[str(run.parameters.get("pipeline"))].append(run)
        for runs in late.values():
            for run in runs[1:]:
                await client.delete_flow_run(run.id)
    return {name: len(runs) - 1 for name, runs in late.items() if len(runs) > 1}


def _late_filter(ids: Sequence[UUID]) -> FlowRunFilter:
    due = {"before_": _now() - _ONE_SECOND}
    return _run_filter(ids, expected_start_time=due, state=_SCHEDULED_STATE)


def _run_filter(ids: Sequence[UUID], **conditions: Any) -> FlowRunFilter:
    from prefect.client.schemas.filters import FlowRunFilter

    deployment_condition = {"deployment_id": {"any_": list(ids)}}
    return FlowRunFilter.model_validate(deployment_condition | conditions)


def _now() -> datetime:
    return datetime.now(UTC)
