"""What `curvote serve` does while it waits: it keeps server and runner alive.

It runs nothing of Prefect's itself, so that whatever happens to a child costs a line
and a wait, never the schedules. A child that has ended is started again on the same
port, secret and database; the runner is started anew whenever the schedules, the clock
or the server have changed, and then registers everything anew.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from curvote.errors import UserError
from curvote.flows.environment import process_tag
from curvote.flows.output.lines import Pipe
from curvote.flows.server.launch import Launch
from curvote.flows.server.state import DATABASE, READY, ask
from curvote.flows.serving import heartbeat, systemd
from curvote.flows.serving.children import Child
from curvote.flows.serving.firing import Due, firings
from curvote.flows.serving.heartbeat import Heartbeat
from curvote.flows.serving.runner_process import Order
from curvote.flows.serving.told import Told
from curvote.flows.serving.watched_file import WatchedFile, read_schedules, sound
from curvote.run.project import Project

Schedules = dict[str, dict[str, Any]]
_TICK = 0.5
_ASK_EVERY = 2.0
_BEAT_EVERY = 5.0
# A server or runner that says nothing for so long hangs.
SILENT = 90.0
_FRESH = 20.0
# NTP slews by less; a machine that slept, or a clock that was set, jumps by more.
_JUMP = 30.0
_NEXT = 5


@dataclass
class Supervisor:
    """Server and runner of one project, kept alive until `stop`.

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
    launch: Launch
    server: Child | None
    runner: Child
    pipe: Pipe
    told: Told
    clock: Callable[[], float] = time.time
    stopping: bool = False
    _state: int | None = READY
    _asked: float = 0.0
    _answered: float = field(default_factory=time.monotonic)
    _reported: float = 0.0
    _registered: bool = False
    _ready: bool = False
    _renewing: bool = False
    _forgiven: bool = False
    _good: datetime | None = None
    _good_schedules: Schedules = field(default_factory=dict)
    _beaten: float = 0.0
    _offset: float = 0.0
    _begun: str = ""
    _due: Due = field(default_factory=Due)
    _faulty: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Watch until `stop` is called, which a signal may do."""
        self._begin()
        while not self.stopping:
            self.tick()
            select.select([self.pipe.descriptor], [], [], _TICK)

    def _begin(self) -> None:
        before = heartbeat.last(self.project)
        if before is not None and before.good:
            self._good = datetime.fromisoformat(before.good)
            self._good_schedules = before.schedules
            self._due.take_over(before.schedules, before.due, self._now())
        self._begun = self._now().isoformat(timespec="seconds")
        self._offset = self.clock() - time.monotonic()
        self._file = WatchedFile(self.project.pipelines_file)
        self._answered = time.monotonic()
        systemd.notify(f"STATUS={self._status()}")

    def stop(self) -> None:
        """Let `run` return."""
        self.stopping = True

    def tick(self) -> None:
        """Look once at everything."""
        for message in self.pipe.messages():
            self._hear(message)
        watched = self._watch_clock, self._watch_server, self._watch_runner
        self.told.of_each((*watched, self._watch_file, self._beat))

    @property
    def trouble(self) -> str:
        """Why schedules do not fire now; empty where they do."""
        if self._state is None:
            return "Prefect's server does not answer"
        if self._state == DATABASE:
            return "Prefect's database does not answer"
        if not self.schedules:
            return "no pipeline has a schedule"
        fresh = time.monotonic() - self._reported < _FRESH
        if not (self._registered and fresh):
            return "the runner of schedules is not up"
        return ""

    # ------------------------------------------------------------------ children
    def _hear(self, message: dict[str, Any]) -> None:
        """Take one message of a child: a line, or how the runner stands."""
        if "line" in message:
            self.told.line(message["line"])
        elif "registered" in message:
            if not self._ready:
                systemd.notify("READY=1")
            self._registered = self._ready = True
            self._reported = time.monotonic()
            self._good_schedules = dict(self.schedules)
            self._forgiven = False
        elif "polled" in message:
            self._reported = time.monotonic()
        elif "missed" in message or "passed" in message:
            fact = dict(message.get("missed") or message["passed"])
            self.told.missed(fact.pop("pipeline"), fact)

    def _watch_server(self) -> None:
        now, child = time.monotonic(), self.server
        if child is not None:
            if not child.there():
                if now >= child.due:
                    child.start()
                    self._answered = now
                return
            if how := child.ended():
                killed = how.startswith("was ended by")
                self._server_fell(child, how if killed else self.launch.why())
                return
        if now - self._asked >= _ASK_EVERY:
            self._asked = now
            self._heard(ask(self.url))

    def _heard(self, state: int | None) -> None:
        """Note whether the server answers; a silent one is ended after a while."""
        now, before = time.monotonic(), self._state
        if state is not None:
            self._answered = now
        elif self.server is not None and now - self._answered > SILENT:
            self._server_fell(self.server, f"has not answered for {SILENT:g} s")
            return
        elif self.server is not None and before == READY:
            return  # busy, perhaps: it is given its time
        self._state = state
        if state == READY and before != READY:
            self.told.say("Prefect's server answers again; schedules go on")
            self._due.forget()
            self._renew()
        elif state != before:
            self.told.say(f"{self.trouble}; schedules wait until it does", "warning")

    def _server_fell(self, child: Child, how: str) -> None:
        self._state = None
        self._fell(child, how)

    def _fell(self, child: Child, how: str) -> None:
        wait = child.fell()
        self.told.restarted(child.called)
        self.told.say(
            f"{child.called} {how}; it is started again in {wait:g} s", "warning"
        )

    def _watch_runner(self) -> None:
        child, now = self.runner, time.monotonic()
        if not child.there():
            if self._state == READY and self.schedules and now >= child.due:
                self._start_runner()
            return
        how = child.ended()
        asked = self._renewing and child.done()
        if how and (asked or self._state != READY):
            child.again()
        elif how:
            self._fell(child, f"{how} ({self.launch.home / 'runner.log'} says why)")
        elif self._state == READY and now - self._reported > SILENT:
            self._fell(child, f"has said nothing for {SILENT:g} s")
        if not child.there():
            self._registered = self._renewing = False

    def _start_runner(self) -> None:
        """Start it with what it must know; of what went by, the unchanged schedules."""
        good = self._good.isoformat() if self._good else ""
        known = self._good_schedules
        since = {n: good for n, s in self.schedules.items() if known.get(n) == s}
        order = Order(
            self.flow,
            str(self.project.root.resolve()),
            self.schedules,
            str(self.pipe.path),
            since if good else {},
            self._forgiven,
        )
        self.runner.start()
        self._reported = time.monotonic()
        self.runner.tell(asdict(order))

    def tell_faulty(self, faulty: dict[str, str]) -> None:
        """Say once what is wrong with which pipeline; health says it again."""
        for name, why in faulty.items():
            if self._faulty.get(name) != why:
                as_was = name in self.schedules
                what = "its schedule stays as it was" if as_was else "nothing runs it"
                self.told.say(f"{why}; {what}", "error", pipeline=name)
        self._faulty = faulty

    def _renew(self) -> None:
        """Let the runner end when it is idle, to be started anew."""
        if self.runner.there() and not self._renewing:
            self._renewing = True
            self.runner.tell({"renew": True})

    # -------------------------------------------------------------- clock and file
    def _watch_clock(self) -> None:
        """Notice a clock that was set, and a machine that slept."""
        offset = self.clock() - time.monotonic()
        jump, self._offset = offset - self._offset, offset
        if abs(jump) > _JUMP:
            self.told.say(
                f"the clock has moved by {jump:+.0f} s; schedules are taken up anew",
                "warning",
            )
            self._due.forget()
            self._renew()

    def _watch_file(self) -> None:
        """Read pipelines.yaml again when it has changed; a faulty one is only said."""
        if not self._file.has_changed():
            return
        try:
            schedules, faulty = read_schedules(self.project)
        except UserError as error:
            said = error.problems[0].message.splitlines()[0].rstrip(".")
            self.told.say(f"{said}; the schedules stay as they were", "error")
            return
        schedules = sound(schedules, faulty)
        # A schedule of which nobody can say what it has become stays.
        kept = {name: self.schedules[name] for name in faulty if name in self.schedules}
        schedules |= kept
        self.tell_faulty(faulty)
        if schedules != self.schedules:
            self.schedules = schedules
            names = ", ".join(schedules) or "none"
            self.told.say(f"pipelines.yaml has changed; scheduled now: {names}")
            self._forgiven = True
            self._renew()

    # -------------------------------------------------------------------- outside
    def _beat(self) -> None:
        if systemd.watchdog():
            systemd.notify("WATCHDOG=1")
        if not self.trouble and not self._renewing:
            self._good = self._now()
        now = time.monotonic()
        if now - self._beaten < _BEAT_EVERY:
            return
        self._due.look(self.schedules, self._now())
        systemd.notify(f"STATUS={self._status()}")
        self.heartbeat().write(self.project)
        self._beaten = now

    def heartbeat(self) -> Heartbeat:
        """Return how it stands."""
        now = self._now()
        return Heartbeat(
            process=process_tag(),
            url=self.url,
            started=self._begun,
            beat=time.monotonic(),
            good=self._good.isoformat() if self._good else None,
            trouble=self.trouble,
            schedules=self._good_schedules,
            next={
                name: [d.isoformat() for d in firings(s, after=now, count=_NEXT)]
                for name, s in self.schedules.items()
            },
            due=self._due.told(),
            faulty=self._faulty,
        )

    def _status(self) -> str:
        return self.trouble or f"scheduled: {', '.join(self.schedules)}"

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)
