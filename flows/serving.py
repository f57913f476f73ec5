"""Run pipelines on their schedules until interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from datetime import UTC, datetime
from multiprocessing import active_children
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.errors import UserError
from curvote.run.project import Project
from flows.environment import SERVED, variable
from flows.flow_runs import sweep
from flows.server import PrefectServer, served_by

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.runner import Runner
    from prefect.schedules import Schedule

# Intervals count from here, so that a restart does not put the next run off.
_ANCHOR = datetime(2020, 1, 1, tzinfo=UTC)
_POLL_SECONDS = 2
# A run that is told to end says so to the server, and is killed after this long.
_GRACE = 4.0
_TAG = "curvote"


def serve(
    project: Project,
    schedules: Mapping[str, Mapping[str, Any]],
    flow: Flow[..., Any] | None = None,
    *,
    port: int,
) -> None:
    """Run each pipeline of ``schedules`` when it is due, one at a time.

    Returns after Ctrl-C or SIGTERM, when everything it started has ended.

    Args:
        project: the project, whose folder is the flow's ``project``.
        schedules: for each pipeline ``{cron, timezone}`` or ``{interval}`` (seconds).
        flow: a flow of an importable module that takes ``pipeline`` and ``project``;
            `flows.scheduled.scheduled` unless given.
        port: of Prefect's pages on this machine; 0 takes any.

    Raises:
        UserError: no pipeline has a schedule, this project is served already, or the
            port is taken.
    """
    _refuse_none(schedules)
    # Nobody watches a scheduled run: what fails has to be seen.
    os.environ["PREFECT_LOGGING_LEVEL"] = "ERROR"
    root = project.root.resolve()
    server = PrefectServer(root, port=port)
    _refuse_second(server)
    with server, variable(SERVED, str(root)):
        if flow is None:
            from flows.scheduled import scheduled

            flow = scheduled
        _prepare(server, root)
        for name, settings in schedules.items():
            print(f"{name}: {_in_words(**settings)}", flush=True)
        try:
            _run(flow, root, schedules)
        finally:
            sweep()


def _tell(server: PrefectServer) -> None:
    pages, file = server.url.removesuffix("/api"), server.secret_file
    how = f"log in with the line in {file}, which each start makes anew"
    print(f"Prefect: {pages} ({how})", flush=True)


def _prepare(server: PrefectServer, root: Path) -> None:
    """Wait for the server, and end what earlier ones left."""
    server.wait()
    if server.is_ours:
        server.announce()
        _tell(server)
    sweep()
    _withdraw(root)


def _refuse_none(schedules: Mapping[str, Mapping[str, Any]]) -> None:
    if not schedules:
        raise UserError(
            "No pipeline has a schedule; add one in pipelines.yaml, for example"
            ' `schedule: {cron: "0 6 * * 1", timezone: UTC}` or'
            " `schedule: {interval: 3600}` (seconds)."
        )


def _refuse_second(server: PrefectServer) -> None:
    other = served_by(server.home)
    if other:
        raise UserError(
            f"This project is being served already ({other['process']} at"
            f" {other['url']}); end that one first."
        )


def _in_words(
    *, cron: str = "", timezone: str = "UTC", interval: float | None = None
) -> str:
    return f"at {cron!r} ({timezone})" if interval is None else f"every {interval:g} s"


def _schedule(
    *, cron: str = "", timezone: str = "UTC", interval: float | None = None
) -> Schedule:
    from prefect.schedules import Cron, Interval

    if interval is None:
        return Cron(cron, timezone=timezone)
    return Interval(interval, anchor_date=_ANCHOR)


def _withdraw(root: Path) -> None:
    """Delete this project's earlier deployments with the runs they left waiting.

    A killed server leaves some; what was missed is not made up for.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import DeploymentFilter
    from prefect.client.schemas.sorting import DeploymentSort

    ours = DeploymentFilter.model_validate({"tags": {"all_": [_TAG]}})
    with get_client(sync_client=True) as client:
        found = client.read_deployments(
            deployment_filter=ours, sort=DeploymentSort.NAME_ASC, limit=200
        )
        for deployment in found:
            if deployment.parameters.get("project") == str(root):
                client.delete_deployment(deployment.id)


def _run(
    flow: Flow[..., Any], root: Path, schedules: Mapping[str, Mapping[str, Any]]
) -> None:
    from prefect.runner import Runner
    from prefect.types.entrypoint import EntrypointType

    runner = Runner(limit=1, query_seconds=_POLL_SECONDS)
    for name, settings in schedules.items():
        # The flow itself, not its place: whatever the server is told to run instead
        # of it, or before it, is never looked at.
        runner.add_flow(
            flow,
            name,
            schedule=_schedule(**settings),
            parameters={"pipeline": name, "project": str(root)},
            tags=[_TAG],
            # Imported by name, so it is found from whatever folder this runs in.
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_until_stopped(runner))


async def _until_stopped(runner: Runner) -> None:
    """Let SIGTERM end the runner as cleanly as Ctrl-C does."""
    running = asyncio.create_task(runner.start())
    await asyncio.sleep(0)  # its first step sets a handler of its own
    loop = asyncio.get_running_loop()

    def stop() -> None:
        # The runner would wait for the run under way to end by itself.
        for run in active_children():
            run.terminate()
            loop.call_later(_GRACE, run.kill)
        running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    with contextlib.suppress(asyncio.CancelledError):
        await running
