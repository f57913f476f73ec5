"""What Prefect's server holds of the schedules: deployments, and runs that wait."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from curvote.flows.serving.firing import between, firings, for_prefect

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.objects import FlowRun
    from prefect.runner import Runner

_TAG = "curvote"
_PAGE = 200  # more are not returned at once
# Missed firings that are counted: of each minute those of two months, in 17 seconds.
MOST = 100_000
_SOON = timedelta(seconds=1)
_HOUR = timedelta(hours=1)
_WAITING = {"type": {"any_": ["SCHEDULED"]}}


def register(
    runner: Runner,
    flow: Flow[..., Any],
    project: str,
    schedules: Mapping[str, Mapping[str, Any]],
) -> dict[str, UUID]:
    """Register the flow for each schedule; delete what else this project had.

    Whatever a deployment was changed to meanwhile is put right again.
    """
    from prefect.types.entrypoint import EntrypointType

    _withdraw(project, schedules)
    ids: dict[str, UUID] = {}
    for name, settings in schedules.items():
        # The flow itself, not its place: whatever the server is told to run instead
        # of it, or before it, is never looked at.
        made = runner.add_flow(
            flow,
            name,
            schedule=for_prefect(settings),
            parameters={"pipeline": name, "project": project},
            tags=[_TAG],
            paused=False,
            # Imported by name, so it is found from whatever folder this runs in.
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        ids[name] = cast("UUID", made)  # outside of an event loop
    return ids


def _withdraw(project: str, keep: Mapping[str, Any]) -> None:
    """Delete this project's other deployments, with the runs that wait for them."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import DeploymentFilter
    from prefect.client.schemas.sorting import DeploymentSort

    ours = DeploymentFilter.model_validate({"tags": {"all_": [_TAG]}})
    with get_client(sync_client=True) as client:
        found = client.read_deployments(
            deployment_filter=ours, sort=DeploymentSort.NAME_ASC, limit=_PAGE
        )
        for deployment in found:
            mine = deployment.parameters.get("project") == project
            if mine and deployment.name not in keep:
                client.delete_deployment(deployment.id)


def missed(
    deployment: UUID, settings: Mapping[str, Any], since: str, until: datetime
) -> dict[str, Any] | None:
    """Return ``{count, first, last}`` of the firings between that nothing ran.

    Of a schedule that fires so often that there are over ``MOST``, the latest are
    counted: ``count`` is at least that then.
    """
    after = datetime.fromisoformat(since)
    if settings.get("interval") is not None:
        after = max(after, until - MOST * timedelta(seconds=settings["interval"]))
    begun = {run.expected_start_time for run in _runs(deployment, after, until)}
    due = between(settings, after, until)
    left = deque((at for at in due if at not in begun and at < until), MOST)
    if not left:
        return None
    first, last = left[0].isoformat(), left[-1].isoformat()
    return {"count": len(left), "first": first, "last": last}


def taken_over(
    deployment: UUID, settings: Mapping[str, Any], seconds: float = 8.0
) -> datetime:
    """Return from when on Prefect's scheduler fires, once it has been seen to.

    It looks at a new deployment within a second or two, and never back.
    """
    end = time.monotonic() + seconds
    while firings(settings, after=_now(), until=_now() + _HOUR, count=1):
        first = _first_waiting(deployment)
        if first is not None:
            return first
        if time.monotonic() > end:
            break
        time.sleep(0.3)
    return _now()


def _first_waiting(deployment: UUID) -> datetime | None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    wanted = _filter(
        [deployment], expected_start_time={"after_": _now()}, state=_WAITING
    )
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(
            flow_run_filter=wanted,
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=1,
        )
    return found[0].expected_start_time if found else None


def _runs(deployment: UUID, after: datetime, until: datetime) -> Iterator[FlowRun]:
    """Yield the runs that were due between and that somebody has begun."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    window = {"after_": after - _SOON, "before_": until + _SOON}
    wanted = _filter([deployment], expected_start_time=window)
    with get_client(sync_client=True) as client:
        for page in count():
            found = client.read_flow_runs(
                flow_run_filter=wanted,
                sort=FlowRunSort.ID_DESC,
                limit=_PAGE,
                offset=page * _PAGE,
            )
            yield from (run for run in found if not _waits(run))
            if len(found) < _PAGE:
                return


def _waits(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_scheduled()


def make_up(deployment: UUID) -> None:
    """Order one run now."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        client.create_flow_run_from_deployment(deployment)


def forget_waiting(ids: Sequence[UUID]) -> None:
    """Delete the runs that schedules left waiting and that have come due."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    if not ids:
        return
    with get_client(sync_client=True) as client:
        while True:
            found = client.read_flow_runs(
                flow_run_filter=_late(ids), sort=FlowRunSort.ID_DESC, limit=_PAGE
            )
            scheduled = [run for run in found if run.auto_scheduled]
            for run in scheduled:
                client.delete_flow_run(run.id)
            if not scheduled:
                return


def pause(ids: Sequence[UUID]) -> None:
    """Let nothing more come due, until all is registered anew."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        for one in ids:
            with suppress(ObjectNotFound):  # of a database that was made anew
                client.pause_deployment(one)


async def pass_over(ids: Sequence[UUID]) -> dict[str, int]:
    """Delete all but the earliest late run of each of these; count them.

    The earliest keeps its place: with the latest, a pipeline whose firings always come
    due with those of others would never have its turn.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    late: dict[str, list[FlowRun]] = defaultdict(list)
    async with get_client() as client:
        found = await client.read_flow_runs(
            flow_run_filter=_late(ids),
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=_PAGE,
        )
        for run in found:
            if run.auto_scheduled:
                late[str(run.parameters.get("pipeline"))].append(run)
        for runs in late.values():
            for run in runs[1:]:
                await client.delete_flow_run(run.id)
    return {name: len(runs) - 1 for name, runs in late.items() if len(runs) > 1}


def _late(ids: Sequence[UUID]) -> FlowRunFilter:
    due = {"before_": _now() - _SOON}
    return _filter(ids, expected_start_time=due, state=_WAITING)


def _filter(ids: Sequence[UUID], **conditions: Any) -> FlowRunFilter:
    from prefect.client.schemas.filters import FlowRunFilter

    own = {"deployment_id": {"any_": list(ids)}}
    return FlowRunFilter.model_validate(own | conditions)


def _now() -> datetime:
    return datetime.now(UTC)
