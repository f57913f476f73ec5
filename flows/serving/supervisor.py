"""Supervisor of `curvote serve`, which keeps server and runner alive."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from curvote.base.errors import UserError
from curvote.flows.environment import process_tag
from curvote.flows.lines import LinePipe, make_line
from curvote.flows.server import launch as systemd
from curvote.flows.server.children import Child
from curvote.flows.server.launch import DATABASE_DOWN, READY, ServerLaunch, api_status
from curvote.flows.serving import health
from curvote.flows.serving.health import Heartbeat
from curvote.flows.serving.runner import RunnerOrder
from curvote.flows.serving.schedules import (
    DueFirings,
    WatchedFile,
    firing_times,
    read_schedules,
    valid_schedules,
)
from curvote.pipeline.config.project import Project


@dataclass
class Announcer:
    """The outlets of the supervisor: lines, notices and metrics."""

    line: Callable[[dict[str, Any]], None]
    missed: Callable[[str, dict[str, Any]], None]
    restarted: Callable[[str], None] = lambda _child: None
    _refused: set[str] = field(default_factory=set)

    def announce(
        self, text: str, level: str = "info", pipeline: str | None = None
    ) -> None:
        """Announce a line of the service itself."""
        self.line(make_line(text, level, pipeline=pipeline))

    def run_each(self, looks: Iterable[Callable[[], None]]) -> None:
        """Call each function; a system error is announced once, and work goes on."""
        refused = {why for look in looks if (why := _system_error(look))}
        for why in sorted(refused - self._refused):
            self.announce(f"{why}; it is tried again (see `curvote doctor`)", "error")
        self._refused = refused


def _system_error(look: Callable[[], None]) -> str:
    try:
        look()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    return ""


Schedules = dict[str, dict[str, Any]]
_TICK_SECONDS = 0.5
_ASK_EVERY = 2.0
_BEAT_EVERY = 5.0
# A server or runner that says nothing for so long hangs.
MAX_SILENCE = 90.0
_FRESH_SECONDS = 20.0
# NTP slews by less; a machine that slept, or a clock that was set, jumps by more.
_CLOCK_JUMP = 30.0
_NEXT_FIRINGS = 5


@dataclass
class Supervisor:
    """Server and runner of one project, kept alive until `stop` is called.

    Args:
        project: the project.
        url: of the server's API.
        schedules: as `PipelinesFile.schedules` gives them.
        flow: ``module:name`` of what is run.
        launch: how the server was started, which can say why it ended.
        server: the server; None: one that is not ours, which is only asked.
        runner: the runner.
        pipe: what children tell.
        told: whom to tell.
    """

    project: Project
    url: str
    schedules: Schedules
    flow: str
    launch: ServerLaunch
    server: Child | None
    runner: Child
    pipe: LinePipe
    announcer: Announcer
    clock: Callable[[], float] = time.time
    stopping: bool = False
    _state: int | None = READY
    _last_poll: float = 0.0
    _answered: float = field(default_factory=time.monotonic)
    _reported: float = 0.0
    _registered: bool = False
    _ready: bool = False
    _renewing: bool = False
    _forgiven: bool = False
    _last_good: datetime | None = None
    _good_schedules: Schedules = field(default_factory=dict)
    _last_beat: float = 0.0
    _offset: float = 0.0
    _start_time: str = ""
    _due: DueFirings = field(default_factory=DueFirings)
    _faulty: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Watch until `stop` is called, which a signal handler may do."""
        self._resume()
        while not self.stopping:
            self.tick()
            select.select([self.pipe.descriptor], [], [], _TICK_SECONDS)

    def _resume(self) -> None:
        before = health.last_heartbeat(self.project)
        if before is not None and before.good:
            self._last_good = datetime.fromisoformat(before.good)
            self._good_schedules = before.schedules
            self._due.resume(before.schedules, before.due, self._now())
        self._start_time = self._now().isoformat(timespec="seconds")
        self._offset = self.clock() - time.monotonic()
        self._file = WatchedFile(self.project.pipelines_file)
        self._answered = time.monotonic()
        systemd.notify_systemd(f"STATUS={self._status_text()}")

    def stop(self) -> None:
        """End `run`."""
        self.stopping = True

    def tick(self) -> None:
        """Check everything once."""
        for message in self.pipe.messages():
            self._receive(message)
        watched = self._watch_clock, self._watch_server, self._watch_runner
        self.announcer.run_each((*watched, self._watch_file, self._beat_if_due))

    @property
    def trouble(self) -> str:
        """The reason why schedules do not fire now, "" if they do."""
        if self._state is None:
            return "Prefect's server does not answer"
        if self._state == DATABASE_DOWN:
            return "Prefect's database does not answer"
        if not self.schedules:
            return "no pipeline has a schedule"
        fresh = time.monotonic() - self._reported < _FRESH_SECONDS
        if not (self._registered and fresh):
            return "the runner of schedules is not up"
        return ""

    # ------------------------------------------------------------------ children
    def _receive(self, message: dict[str, Any]) -> None:
        """Handle one message of a child: a line, or the runner's state."""
        if "line" in message:
            self.announcer.line(message["line"])
        elif "registered" in message:
            if not self._ready:
                systemd.notify_systemd("READY=1")
            self._registered = self._ready = True
            self._reported = time.monotonic()
            self._good_schedules = dict(self.schedules)
            self._forgiven = False
        elif "polled" in message:
            self._reported = time.monotonic()
        elif "missed" in message or "passed" in message:
            fact = dict(message.get("missed") or message["passed"])
            self.announcer.missed(fact.pop("pipeline"), fact)

    def _watch_server(self) -> None:
        now, child = time.monotonic(), self.server
        if child is not None:
            if not child.is_started():
                if now >= child.due:
                    child.start()
                    self._answered = now
                return
            if how := child.end_reason():
                killed = how.startswith("was ended by")
                self._restart_server(child, how if killed else self.launch.end_reason())
                return
        if now - self._last_poll >= _ASK_EVERY:
            self._last_poll = now
            self._note_status(api_status(self.url))

    def _note_status(self, state: int | None) -> None:
        """Note the server's status; restart a server that is silent for long."""
        now, before = time.monotonic(), self._state
        if state is not None:
            self._answered = now
        elif self.server is not None and now - self._answered > MAX_SILENCE:
            self._restart_server(self.server, f"has not answered for {MAX_SILENCE:g} s")
            return
        elif self.server is not None and before == READY:
            return  # busy, perhaps: it is given its time
        self._state = state
        if state == READY and before != READY:
            self.announcer.announce("Prefect's server answers again; schedules go on")
            self._due.clear()
            self._renew()
        elif state != before:
            self.announcer.announce(
                f"{self.trouble}; schedules wait until it does", "warning"
            )

    def _restart_server(self, child: Child, how: str) -> None:
        self._state = None
        self._schedule_restart(child, how)

    def _schedule_restart(self, child: Child, how: str) -> None:
        wait = child.schedule_restart()
        self.announcer.restarted(child.called)
        self.announcer.announce(
            f"{child.called} {how}; it is started again in {wait:g} s", "warning"
        )

    def _watch_runner(self) -> None:
        child, now = self.runner, time.monotonic()
        if not child.is_started():
            if self._state == READY and self.schedules and now >= child.due:
                self._start_runner()
            return
        how = child.end_reason()
        renewed = self._renewing and child.has_finished()
        if how and (renewed or self._state != READY):
            child.restart_now()
        elif how:
            self._schedule_restart(
                child, f"{how} ({self.launch.home / 'runner.log'} says why)"
            )
        elif self._state == READY and now - self._reported > MAX_SILENCE:
            self._schedule_restart(child, f"has said nothing for {MAX_SILENCE:g} s")
        if not child.is_started():
            self._registered = self._renewing = False

    def _start_runner(self) -> None:
        """Start the runner with its order, and the times since the last success."""
        good = self._last_good.isoformat() if self._last_good else ""
        good_schedules = self._good_schedules
        since = {
            n: good for n, s in self.schedules.items() if good_schedules.get(n) == s
        }
        order = RunnerOrder(
            self.flow,
            str(self.project.root.resolve()),
            self.schedules,
            str(self.pipe.path),
            since if good else {},
            self._forgiven,
        )
        self.runner.start()
        self._reported = time.monotonic()
        self.runner.send_message(asdict(order))

    def report_faulty(self, faulty: dict[str, str]) -> None:
        """Report once which pipelines are faulty, and why."""
        for name, why in faulty.items():
            if self._faulty.get(name) != why:
                as_was = name in self.schedules
                what = "its schedule stays as it was" if as_was else "nothing runs it"
                self.announcer.announce(f"{why}; {what}", "error", pipeline=name)
        self._faulty = faulty

    def _renew(self) -> None:
        """Ask the runner to end when it is idle, for a restart."""
        if self.runner.is_started() and not self._renewing:
            self._renewing = True
            self.runner.send_message({"renew": True})

    # -------------------------------------------------------------- clock and file
    def _watch_clock(self) -> None:
        """Detect a changed clock, and a machine that slept."""
        offset = self.clock() - time.monotonic()
        jump, self._offset = offset - self._offset, offset
        if abs(jump) > _CLOCK_JUMP:
            self.announcer.announce(
                f"the clock has moved by {jump:+.0f} s; schedules are taken up anew",
                "warning",
            )
            self._due.clear()
            self._renew()

    def _watch_file(self) -> None:
        """Read a changed pipelines.yaml; faults are only reported."""
        if not self._file.has_changed():
            return
        try:
            schedules, faulty = read_schedules(self.project)
        except UserError as error:
            problem = error.problems[0].message.splitlines()[0].rstrip(".")
            self.announcer.announce(
                f"{problem}; the schedules stay as they were", "error"
            )
            return
        schedules = valid_schedules(schedules, faulty)
        # A schedule of which nobody can say what it has become stays.
        unchanged = {
            name: self.schedules[name] for name in faulty if name in self.schedules
        }
        schedules |= unchanged
        self.report_faulty(faulty)
        if schedules != self.schedules:
            self.schedules = schedules
            names = ", ".join(schedules) or "none"
            self.announcer.announce(
                f"pipelines.yaml has changed; scheduled now: {names}"
            )
            self._forgiven = True
            self._renew()

    # -------------------------------------------------------------------- outside
    def _beat_if_due(self) -> None:
        if systemd.watchdog_seconds():
            systemd.notify_systemd("WATCHDOG=1")
        if not self.trouble and not self._renewing:
            self._last_good = self._now()
        now = time.monotonic()
        if now - self._last_beat < _BEAT_EVERY:
            return
        self._due.observe(self.schedules, self._now())
        systemd.notify_systemd(f"STATUS={self._status_text()}")
        self.heartbeat().write(self.project)
        self._last_beat = now

    def heartbeat(self) -> Heartbeat:
        """Return the current state as a heartbeat."""
        now = self._now()
        return Heartbeat(
            process=process_tag(),
            url=self.url,
            started=self._start_time,
            beat=time.monotonic(),
            good=self._last_good.isoformat() if self._last_good else None,
            trouble=self.trouble,
            schedules=self._good_schedules,
            next={
                name: [
                    d.isoformat()
                    for d in firing_times(s, after=now, count=_NEXT_FIRINGS)
                ]
                for name, s in self.schedules.items()
            },
            due=self._due.to_json(),
            faulty=self._faulty,
        )

    def _status_text(self) -> str:
        return self.trouble or f"scheduled: {', '.join(self.schedules)}"

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)
