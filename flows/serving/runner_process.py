"""Prefect's runner of schedules, in a process that `curvote serve` watches.

Its standard input brings the order, a line of JSON (`Order`), then lines such as
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

from curvote.flows.environment import RUNNER_PID
from curvote.flows.output import lines
from curvote.flows.server.flow_runs import sweep
from curvote.flows.serving import deployments

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.runner import Runner

_POLL_SECONDS = 2.0
# A run that is told to end says so to the server, and is killed after this long.
_GRACE = 2.5


@dataclass(frozen=True)
class Order:
    """What is to be run: a flow, named ``module:name``, for each schedule.

    ``since`` says from when on a pipeline's firings may have been missed; ``forgiven``
    ones were only put off, and are made up whatever their schedule says. ``report`` is
    the pipe for `curvote.flows.output.lines.send`.
    """

    flow: str
    project: str
    schedules: dict[str, dict[str, Any]]
    report: str
    since: dict[str, str] = field(default_factory=dict)
    forgiven: bool = False

    def find(self) -> Flow[..., Any]:
        """Import the flow."""
        module, _, name = self.flow.partition(":")
        found: Flow[..., Any] = getattr(import_module(module), name)
        return found


def main() -> None:
    """Register the schedules, then run what is due until standard input ends."""
    # Unbuffered: a thread that waits at a buffer aborts the end of the process.
    orders = io.FileIO(0, closefd=False)
    order = Order(**json.loads(orders.readline()))
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    os.environ[RUNNER_PID] = str(os.getpid())
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        sweep()
        runner, ids = _prepared(order)
        asyncio.run(_Work(order, runner, ids, orders).run())
        sweep()


def _prepared(order: Order) -> tuple[Runner, list[UUID]]:
    """Register everything anew, and tell what was missed meanwhile."""
    from prefect.runner import Runner

    runner = Runner(limit=1, query_seconds=_POLL_SECONDS, pause_on_shutdown=False)
    ids = deployments.register(runner, order.find(), order.project, order.schedules)
    deployments.forget_waiting(list(ids.values()))
    for name, since in order.since.items():
        settings, own = order.schedules[name], ids[name]
        until = deployments.taken_over(own, settings)
        missed = deployments.missed(own, settings, since, until)
        latest = settings.get("catch_up") == "latest"
        if missed and (latest or order.forgiven):
            deployments.make_up(own)
        if missed and not order.forgiven:
            _tell(order, missed={"pipeline": name, "made_up": latest} | missed)
    _tell(order, registered=sorted(ids))
    return runner, list(ids.values())


def _tell(order: Order, **message: Any) -> None:
    lines.send(Path(order.report), message)


@dataclass
class _Work:
    """The runner at work, told by its parent when to end."""

    order: Order
    runner: Runner
    ids: list[UUID]
    orders: io.FileIO
    renewing: bool = False
    paused: bool = False
    polled: Any = None
    passed: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        running = asyncio.create_task(self.runner.start())
        watching = asyncio.create_task(self._watch(running))
        await asyncio.sleep(0)  # the runner's first step sets a handler of its own
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, running)
        listener = threading.Thread(
            target=self._listen, args=(loop, running), daemon=True
        )
        listener.start()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        watching.cancel()

    def _listen(self, loop: asyncio.AbstractEventLoop, running: Any) -> None:
        """Renew on any line; stop at the end of standard input."""
        for line in self.orders:
            self.renewing = self.renewing or bool(line.strip())
        loop.call_soon_threadsafe(self._stop, running)

    def _stop(self, running: asyncio.Task[None]) -> None:
        """End the run under way too: the runner would wait for it to end by itself."""
        loop = asyncio.get_running_loop()
        for run in active_children():
            run.terminate()
            loop.call_later(_GRACE, run.kill)
        running.cancel()

    async def _watch(self, running: asyncio.Task[None]) -> None:
        """Report that schedules are looked at; end when idle, once told to renew."""
        while not running.done():
            await asyncio.sleep(_POLL_SECONDS / 2)
            if not self.runner.started:
                continue
            busy = bool(active_children()) or not self.runner.has_slots_available()
            if self.renewing:
                await self._pause()
            if self.paused and not busy:
                running.cancel()
            if self.runner.last_polled != self.polled:
                self.polled = self.runner.last_polled
                _tell(self.order, polled=time.monotonic(), busy=busy)
            if busy:
                await self._pass_over()
            else:
                self._tell_passed()

    async def _pause(self) -> None:
        """Let nothing new begin: one run after the other would never be idle."""
        if not self.paused:
            with contextlib.suppress(Exception):  # the next look may succeed
                await asyncio.to_thread(deployments.pause, self.ids)
                self.paused = True

    async def _pass_over(self) -> None:
        """Let one firing of a pipeline wait, not all that come due in a long run."""
        with contextlib.suppress(Exception):  # the next look may succeed
            self.passed.update(await deployments.pass_over(self.ids))

    def _tell_passed(self) -> None:
        for name, count in self.passed.items():
            _tell(self.order, passed={"pipeline": name, "count": count})
        self.passed.clear()


if __name__ == "__main__":
    main()
