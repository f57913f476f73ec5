"""Runner of schedules: deployments in Prefect's server, and its own process."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import count
from multiprocessing import active_children
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from curvote.flows import lines
from curvote.flows.environment import RUNNER_VARIABLE
from curvote.flows.server import flow_runs
from curvote.flows.server.private import api_url, is_own_server
from curvote.flows.serving import schedules as planning

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun
    from prefect.runner import Runner


_DEPLOYMENT_TAG = "curvote"
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
    from prefect.client.orchestration import get_client
    from prefect.types.entrypoint import EntrypointType

    with get_client(sync_client=True) as client:
        flow_runs.delete_deployments(client, _DEPLOYMENT_TAG, [project], schedules)
    ids: dict[str, UUID] = {}
    for name, settings in schedules.items():
        # The flow itself, not its place: whatever the server is told to run instead
        # of it, or before it, is never looked at.
        deployment_id = runner.add_flow(
            flow,
            name,
            schedule=planning.to_prefect(settings),
            parameters={"pipeline": name, "project": project},
            tags=[_DEPLOYMENT_TAG],
            paused=False,
            # Imported by name, so it is found from whatever folder this runs in.
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        ids[name] = cast("UUID", deployment_id)  # outside of an event loop
    return ids


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
    window = {"after_": after - _ONE_SECOND, "before_": until + _ONE_SECOND}
    wanted: dict[str, Any] = {"deployment_id": {"any_": [deployment]}}
    wanted["expected_start_time"] = window
    started = set()
    for page in count():
        runs = flow_runs.read_flow_runs(offset=page * flow_runs.PAGE_SIZE, **wanted)
        for run in runs:
            if run.state is None or not run.state.is_scheduled():
                started.add(run.expected_start_time)
        if len(runs) < flow_runs.PAGE_SIZE:
            break
    due = planning.firing_times_between(settings, after, until)
    missed = deque((at for at in due if at not in started and at < until), MAX_MISSED)
    if not missed:
        return None
    first, last = missed[0].isoformat(), missed[-1].isoformat()
    return {"count": len(missed), "first": first, "last": last}


def await_scheduler(
    deployment: UUID, settings: Mapping[str, Any], seconds: float = 8.0
) -> datetime:
    """Return the time from which Prefect's scheduler fires a deployment.

    It looks at a new deployment within a second or two, and never back.
    """
    end = time.monotonic() + seconds
    while planning.firing_times(
        settings, after=_wall_time(), until=_wall_time() + _ONE_HOUR, count=1
    ):
        waiting = flow_runs.read_flow_runs(
            "EXPECTED_START_TIME_ASC",
            limit=1,
            deployment_id={"any_": [deployment]},
            expected_start_time={"after_": _wall_time()},
            state=_SCHEDULED_STATE,
        )
        if waiting and waiting[0].expected_start_time is not None:
            return waiting[0].expected_start_time
        if time.monotonic() > end:
            break
        time.sleep(0.3)
    return _wall_time()


def delete_due_runs(ids: Sequence[UUID]) -> None:
    """Delete the scheduled runs that are waiting and due."""
    from prefect.client.orchestration import get_client

    while ids:
        due_runs = flow_runs.read_flow_runs(**_late_conditions(ids))
        scheduled = [run for run in due_runs if run.auto_scheduled]
        with get_client(sync_client=True) as client:
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
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.sorting import FlowRunSort

    late: dict[str, list[FlowRun]] = defaultdict(list)
    async with get_client() as client:
        due_runs = await client.read_flow_runs(
            flow_run_filter=FlowRunFilter.model_validate(_late_conditions(ids)),
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=flow_runs.PAGE_SIZE,
        )
        for run in due_runs:
            if run.auto_scheduled:
                late[str(run.parameters.get("pipeline"))].append(run)
        for runs in late.values():
            for run in runs[1:]:
                await client.delete_flow_run(run.id)
    return {name: len(runs) - 1 for name, runs in late.items() if len(runs) > 1}


def _late_conditions(ids: Sequence[UUID]) -> dict[str, Any]:
    due = {"before_": _wall_time() - _ONE_SECOND}
    wanted = {"deployment_id": {"any_": list(ids)}, "expected_start_time": due}
    return wanted | {"state": _SCHEDULED_STATE}


def _wall_time() -> datetime:
    return datetime.now(UTC)


_POLL_SECONDS = 2.0
# A run that is told to end says so to the server, and is killed after this long.
_KILL_SECONDS = 2.5


@dataclass(frozen=True)
class RunnerOrder:
    """The runner's order: a flow, named ``module:name``, for each schedule.

    ``since`` says from when on a pipeline's firings may have been missed; ``forgiven``
    ones were only put off, and are made up whatever their schedule says. ``report`` is
    the pipe for `curvote.flows.lines.send_message`.
    """

    flow: str
    project: str
    schedules: dict[str, dict[str, Any]]
    report: str
    since: dict[str, str] = field(default_factory=dict)
    forgiven: bool = False


def main() -> None:
    """Register the schedules, then run what is due until standard input ends."""
    # Unbuffered: a thread that waits at a buffer aborts the end of the process.
    orders = io.FileIO(0, closefd=False)
    order = RunnerOrder(**json.loads(orders.readline()))
    from prefect.client.orchestration import get_client
    from prefect.runner import Runner
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    os.environ[RUNNER_VARIABLE] = str(os.getpid())
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        state = Path(order.project) / "data" / "state"
        sweeps = is_own_server(state, api_url())  # others' runs live elsewhere
        if sweeps:
            flow_runs.close_dead_flow_runs()
        runner = Runner(limit=1, query_seconds=_POLL_SECONDS, pause_on_shutdown=False)
        module, _, name = order.flow.partition(":")
        flow: Flow[..., Any] = getattr(import_module(module), name)
        ids = register_schedules(runner, flow, order.project, order.schedules)
        delete_due_runs(list(ids.values()))
        for name, since in order.since.items():
            settings, deployment = order.schedules[name], ids[name]
            until = await_scheduler(deployment, settings)
            missed = missed_firings(deployment, settings, since, until)
            latest = settings.get("catch_up") == "latest"
            if missed and (latest or order.forgiven):
                with get_client(sync_client=True) as client:
                    client.create_flow_run_from_deployment(deployment)
            if missed and not order.forgiven:
                _report(order, missed={"pipeline": name, "made_up": latest} | missed)
        _report(order, registered=sorted(ids))
        asyncio.run(_RunnerWork(order, runner, [*ids.values()], orders).run())
        if sweeps:
            flow_runs.close_dead_flow_runs()


def _report(order: RunnerOrder, **message: Any) -> None:
    lines.send_message(Path(order.report), message)


@dataclass
class _RunnerWork:
    """The runner at work, which its parent may end or renew."""

    order: RunnerOrder
    runner: Runner
    ids: list[UUID]
    orders: io.FileIO
    renewing: bool = False
    paused: bool = False
    polled: Any = None
    passed: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        running = asyncio.create_task(self.runner.start())
        watching = asyncio.create_task(self._watch_runner(running))
        await asyncio.sleep(0)  # the runner's first step sets a handler of its own
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop_run, running)

        def read_orders() -> None:  # renew on any line; stop at the end of input
            for line in self.orders:
                self.renewing = self.renewing or bool(line.strip())
            loop.call_soon_threadsafe(self._stop_run, running)

        threading.Thread(target=read_orders, daemon=True).start()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        watching.cancel()

    def _stop_run(self, running: asyncio.Task[None]) -> None:
        """End the current run too, for which the runner would wait."""
        loop = asyncio.get_running_loop()
        for run in active_children():
            run.terminate()
            loop.call_later(_KILL_SECONDS, run.kill)
        running.cancel()

    async def _watch_runner(self, running: asyncio.Task[None]) -> None:
        """Report that schedules are polled; end when idle after a renewal order."""
        while not running.done():
            await asyncio.sleep(_POLL_SECONDS / 2)
            if not self.runner.started:
                continue
            busy = bool(active_children()) or not self.runner.has_slots_available()
            if self.renewing and not self.paused:  # pause them, so that it becomes idle
                with contextlib.suppress(Exception):  # the next look may succeed
                    await asyncio.to_thread(pause_deployments, self.ids)
                    self.paused = True
            if self.paused and not busy:
                running.cancel()
            if self.runner.last_polled != self.polled:
                self.polled = self.runner.last_polled
                _report(self.order, polled=time.monotonic(), busy=busy)
            if busy:  # one waiting firing of a pipeline is kept
                with contextlib.suppress(Exception):  # the next look may succeed
                    self.passed.update(await delete_surplus_runs(self.ids))
            else:
                for name, number in self.passed.items():
                    _report(self.order, passed={"pipeline": name, "count": number})
                self.passed.clear()


if __name__ == "__main__":
    main()
