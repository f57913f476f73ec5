"""Runner of schedules: Prefect's runner in a process that `curvote serve` watches.

Its standard input brings the order, a line of JSON (`RunnerOrder`), then lines such as
``{"renew": true}``; its end ends the process with the run under way. What it has to
tell goes through the pipe of `curvote.flows.output.lines`; its output is Prefect's, for
a log.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import active_children
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from curvote.flows.environment import RUNNER_VARIABLE
from curvote.flows.output import lines
from curvote.flows.server.flow_runs import close_dead_flow_runs
from curvote.flows.serving import deployments

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.runner import Runner

_POLL_SECONDS = 2.0
# A run that is told to end says so to the server, and is killed after this long.
_KILL_SECONDS = 2.5


@dataclass(frozen=True)
class RunnerOrder:
    """The runner's order: a flow, named ``module:name``, for each schedule.

    ``since`` says from when on a pipeline's firings may have been missed; ``forgiven``
    ones were only put off, and are made up whatever their schedule says. ``report`` is
    the pipe for `curvote.flows.output.lines.send_message`.
    """

    flow: str
    project: str
    schedules: dict[str, dict[str, Any]]
    report: str
    since: dict[str, str] = field(default_factory=dict)
    forgiven: bool = False

    def import_flow(self) -> Flow[..., Any]:
        """Return the imported flow."""
        module, _, name = self.flow.partition(":")
        flow: Flow[..., Any] = getattr(import_module(module), name)
        return flow


def main() -> None:
    """Register the schedules, then run what is due until standard input ends."""
    # Unbuffered: a thread that waits at a buffer aborts the end of the process.
    orders = io.FileIO(0, closefd=False)
    order = RunnerOrder(**json.loads(orders.readline()))
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    os.environ[RUNNER_VARIABLE] = str(os.getpid())
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        close_dead_flow_runs()
        runner, ids = _prepare_runner(order)
        asyncio.run(_RunnerWork(order, runner, ids, orders).run())
        close_dead_flow_runs()


def _prepare_runner(order: RunnerOrder) -> tuple[Runner, list[UUID]]:
    """Register all schedules, and report firings that were missed."""
    from prefect.runner import Runner

    runner = Runner(limit=1, query_seconds=_POLL_SECONDS, pause_on_shutdown=False)
    ids = deployments.register_schedules(
        runner, order.import_flow(), order.project, order.schedules
    )
    deployments.delete_due_runs(list(ids.values()))
    for name, since in order.since.items():
        settings, deployment = order.schedules[name], ids[name]
        until = deployments.await_scheduler(deployment, settings)
        missed = deployments.missed_firings(deployment, settings, since, until)
        latest = settings.get("catch_up") == "latest"
        if missed and (latest or order.forgiven):
            deployments.order_run(deployment)
        if missed and not order.forgiven:
            _report(order, missed={"pipeline": name, "made_up": latest} | missed)
    _report(order, registered=sorted(ids))
    return runner, list(ids.values())


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
        listener = threading.Thread(
            target=self._read_orders, args=(loop, running), daemon=True
        )
        listener.start()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        watching.cancel()

    def _read_orders(self, loop: asyncio.AbstractEventLoop, running: Any) -> None:
        """Renew on any line; stop at the end of standard input."""
        for line in self.orders:
            self.renewing = self.renewing or bool(line.strip())
        loop.call_soon_threadsafe(self._stop_run, running)

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
            if self.renewing:
                await self._pause_schedules()
            if self.paused and not busy:
                running.cancel()
            if self.runner.last_polled != self.polled:
                self.polled = self.runner.last_polled
                _report(self.order, polled=time.monotonic(), busy=busy)
            if busy:
                await self._drop_surplus()
            else:
                self._report_dropped()

    async def _pause_schedules(self) -> None:
        """Pause the schedules, so that the runner becomes idle."""
        if not self.paused:
            with contextlib.suppress(Exception):  # the next look may succeed
                await asyncio.to_thread(deployments.pause_deployments, self.ids)
                self.paused = True

    async def _drop_surplus(self) -> None:
        """Keep one waiting firing of a pipeline, and delete the others."""
        with contextlib.suppress(Exception):  # the next look may succeed
            self.passed.update(await deployments.delete_surplus_runs(self.ids))

    def _report_dropped(self) -> None:
        for name, count in self.passed.items():
            _report(self.order, passed={"pipeline": name, "count": count})
        self.passed.clear()


if __name__ == "__main__":
    main()
