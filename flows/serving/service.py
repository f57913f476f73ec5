"""Service `curvote serve`: pipelines run on their schedules until interrupted."""

import contextlib
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from threading import Thread
from typing import Any

from curvote.base.errors import Problem, UserError
from curvote.chain.settings import parse_span
from curvote.flows import lines
from curvote.flows.environment import SERVED_VARIABLE, process_tag, variable_set
from curvote.flows.lines import LinePipe, make_line
from curvote.flows.server import launch as systemd
from curvote.flows.server.launch import DATABASE_DOWN, READY, Child, ServerLaunch
from curvote.flows.server.private import PrefectServer, read_serving
from curvote.flows.serving import health
from curvote.flows.serving import schedules as planning
from curvote.flows.serving.health import Heartbeat
from curvote.flows.serving.runner import RunnerOrder
from curvote.flows.serving.schedules import Schedules
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
        refused: set[str] = set()
        for look in looks:
            try:
                look()
            except OSError as error:
                place = f"{error.filename}: " if error.filename else ""
                refused.add(f"{place}{error.strerror or error}")
        for why in sorted(refused - self._refused):
            self.announce(f"{why}; it is tried again (see `curvote doctor`)", "error")
        self._refused = refused


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
    _due: planning.DueFirings = field(default_factory=planning.DueFirings)
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
            self._due.resume(before.schedules, before.due, self._clock_time())
        self._start_time = self._clock_time().isoformat(timespec="seconds")
        self._offset = self.clock() - time.monotonic()
        self._file = planning.WatchedFile(self.project.pipelines_file)
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
            return "the process that starts scheduled runs is not up"
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
                self._state = None
                self._schedule_restart(
                    child, how if killed else self.launch.end_reason()
                )
                return
        if now - self._last_poll >= _ASK_EVERY:
            self._last_poll = now
            self._note_status(systemd.api_status(self.url))

    def _note_status(self, state: int | None) -> None:
        """Note the server's status; restart a server that is silent for long."""
        now, before = time.monotonic(), self._state
        if state is not None:
            self._answered = now
        elif self.server is not None and now - self._answered > MAX_SILENCE:
            self._state = None
            words = f"has not answered for {MAX_SILENCE:g} s"
            self._schedule_restart(self.server, words)
            return
        elif self.server is not None and before == READY:
            return  # busy, perhaps: it is given its time
        self._state = state
        if state == READY and before != READY:
            self.announcer.announce("Prefect's server answers again; schedules go on")
            self._due.clear()
            self._renew()
        elif state != before:
            words = f"{self.trouble}; schedules wait until it does"
            self.announcer.announce(words, "warning")

    def _schedule_restart(self, child: Child, how: str) -> None:
        wait = child.schedule_restart()
        self.announcer.restarted(child.called)
        words = f"{child.called} {how}; it is started again in {wait:g} s"
        self.announcer.announce(words, "warning")

    def _watch_runner(self) -> None:
        child, now = self.runner, time.monotonic()
        if not child.is_started():
            if self._state == READY and self.schedules and now >= child.due:
                self._start_runner()
            return
        how = child.end_reason()
        renewed = self._renewing and child.has_finished()
        if how and (renewed or self._state != READY):
            child.end(0.0)
            child.due = 0.0  # it may be started again at once
        elif how:
            log = self.launch.home / "runner.log"
            self._schedule_restart(child, f"{how} ({log} says why)")
        elif self._state == READY and now - self._reported > MAX_SILENCE:
            self._schedule_restart(child, f"has said nothing for {MAX_SILENCE:g} s")
        if not child.is_started():
            self._registered = self._renewing = False

    def _start_runner(self) -> None:
        """Start the runner with its order, and the times since the last success."""
        good = self._last_good.isoformat() if self._last_good else ""
        good_schedules, schedules = self._good_schedules, self.schedules
        since = {n: good for n, s in schedules.items() if good_schedules.get(n) == s}
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
            words = f"the clock has moved by {jump:+.0f} s"
            self.announcer.announce(
                f"{words}; schedules go on by the new time", "warning"
            )
            self._due.clear()
            self._renew()

    def _watch_file(self) -> None:
        """Read a changed pipelines.yaml; faults are only reported."""
        if not self._file.has_changed():
            return
        try:
            schedules, faulty = planning.read_schedules(self.project)
        except UserError as error:
            problem = error.problems[0].message.splitlines()[0].rstrip(".")
            words = f"{problem}; the schedules stay as they were"
            self.announcer.announce(words, "error")
            return
        schedules = planning.valid_schedules(schedules, faulty)
        # A schedule of which nobody can say what it has become stays.
        before = self.schedules
        schedules |= {name: before[name] for name in faulty if name in before}
        self.report_faulty(faulty)
        if schedules != self.schedules:
            self.schedules = schedules
            names = ", ".join(schedules) or "none"
            words = f"pipelines.yaml has changed; scheduled now: {names}"
            self.announcer.announce(words)
            self._forgiven = True
            self._renew()

    # -------------------------------------------------------------------- outside
    def _beat_if_due(self) -> None:
        if systemd.watchdog_seconds():
            systemd.notify_systemd("WATCHDOG=1")
        if not self.trouble and not self._renewing:
            self._last_good = self._clock_time()
        now = time.monotonic()
        if now - self._last_beat < _BEAT_EVERY:
            return
        self._due.observe(self.schedules, self._clock_time())
        systemd.notify_systemd(f"STATUS={self._status_text()}")
        self.heartbeat().write(self.project)
        self._last_beat = now

    def heartbeat(self) -> Heartbeat:
        """Return the current state as a heartbeat."""
        now, following = self._clock_time(), {}
        for name, schedule in self.schedules.items():
            dates = planning.firing_times(schedule, after=now, count=_NEXT_FIRINGS)
            following[name] = [date.isoformat() for date in dates]
        return Heartbeat(
            process=process_tag(),
            url=self.url,
            started=self._start_time,
            beat=time.monotonic(),
            good=self._last_good.isoformat() if self._last_good else None,
            trouble=self.trouble,
            schedules=self._good_schedules,
            next=following,
            due=self._due.to_json(),
            faulty=self._faulty,
        )

    def _status_text(self) -> str:
        return self.trouble or f"scheduled: {', '.join(self.schedules)}"

    def _clock_time(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)


SCHEDULED_FLOW = "curvote.flows.serving.scheduled_run:scheduled"
# Nobody watches a scheduled run: what fails has to be seen, in its log.
# A stage's errors are not: Prefect would write out words that may hold values.
_LOG_SETTINGS = {
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_LOGGING_LOGGERS_PREFECT_FLOW_RUNS_LEVEL": "WARNING",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "true",
}
# SIGTERM to the end: what runs is told, then killed; then the server.
_RUNNER_SECONDS, _SERVER_SECONDS = 4.0, 2.5


def serve_schedules(
    project: Project,
    schedules: Schedules,
    flow: str = SCHEDULED_FLOW,
    *,
    port: int,
    metrics_port: int | None = None,
    faulty: dict[str, str] | None = None,
) -> None:
    """Run each pipeline of ``schedules`` when it is due, one at a time.

    Returns after Ctrl-C or SIGTERM, when everything it started has ended. Whatever
    else ends, server or runner, is started again.

    Args:
        project: the project, whose folder is the flow's ``project``.
        schedules: as `PipelinesFile.schedules` gives them.
        flow: ``module:name`` of a flow that takes ``pipeline`` and ``project``.
        port: of Prefect's pages on this machine; 0 takes any.
        metrics_port: of figures for Prometheus on this machine; None: nowhere.
        faulty: what is wrong with pipelines that cannot be read; the others run.

    Raises:
        UserError: no pipeline has a schedule that can be, this project is served
            already, a port is taken, or Prefect's server cannot be started.
    """
    faulty = dict(faulty or {})
    _refuse_no_schedules(schedules, faulty)
    root = project.root.resolve()
    span = None
    if project.pipelines_file.exists():
        from curvote.pipeline.config.file import PipelinesFile

        span = PipelinesFile(project).runtime().retention.runs
    keep_seconds = None if span is None else parse_span(span)
    server = PrefectServer(root, port=port, keep_seconds=keep_seconds)
    with _single_service(server), server, variable_set(SERVED_VARIABLE, str(root)):
        # Imports Prefect, while the server starts.
        schedules = planning.valid_schedules(schedules, faulty)
        _refuse_no_schedules(schedules, faulty)
        announcer = _make_announcer(project, metrics_port)
        child, pipe = server.await_child(), lines.LinePipe(project.state / "serve.pipe")
        with contextlib.closing(pipe):
            supervisor = Supervisor(
                project=project,
                url=server.url,
                schedules=schedules,
                flow=flow,
                launch=server.launch,
                server=child,
                runner=systemd.runner_child(
                    server.home, pipe.variables() | _LOG_SETTINGS
                ),
                pipe=pipe,
                announcer=announcer,
            )
            if server.is_ours:
                server.announce()
                pages, file = server.url.removesuffix("/api"), server.secret_file
                how = f"log in with the line in {file}, which each start makes anew"
                announcer.announce(f"Prefect: {pages} ({how})")
            for name, settings in schedules.items():
                announcer.announce(planning.describe_schedule(settings), pipeline=name)
            supervisor.report_faulty(faulty)
            _run_supervisor(supervisor)


def _run_supervisor(supervisor: Supervisor) -> None:
    """Run the supervisor until a signal comes, then end its children."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.signal(n, lambda *_: supervisor.stop()) for n in numbers}
    try:
        supervisor.run()
    finally:
        systemd.notify_systemd("STOPPING=1", "STATUS=ending")
        supervisor.announcer.announce("serve ends")
        # The runner first, as its run still reports to the server.
        supervisor.runner.end(_RUNNER_SECONDS)
        if supervisor.server is not None:
            supervisor.server.end(_SERVER_SECONDS)
        for number, handler in before.items():
            signal.signal(number, handler)


def _make_announcer(project: Project, metrics_port: int | None) -> Announcer:
    from curvote.flows.notices import report_missed
    from curvote.flows.serving.metrics import ProjectMetrics, serve_metrics

    figures = ProjectMetrics(project, serving=True)
    if metrics_port is not None:
        serve_metrics(figures, metrics_port)

    log = lines.LineLog(project.state / "serve.log")

    def write_line(line: dict[str, Any]) -> None:
        log.write_entry(_with_pipeline(line))
        _print_line(line)

    def write_text(text: str, level: str = "info", pipeline: str | None = None) -> None:
        write_line(lines.make_line(text, level, pipeline=pipeline))

    def describe_missed(name: str, fact: dict[str, Any]) -> None:
        figures.count("missed_firings", name, fact["count"])
        # Whoever is told may take long; schedules do not wait for it.
        arguments = project, write_text, name, fact
        Thread(target=report_missed, args=arguments, daemon=True).start()

    restarted = partial(figures.count, "serve_restarts")
    return Announcer(line=write_line, missed=describe_missed, restarted=restarted)


def _print_line(line: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # a full disk under the log ends no schedule
        lines.print_line(line if lines.is_json() else _with_pipeline(line), sys.stdout)


def _with_pipeline(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with the pipeline's name before its message."""
    name = " ".join(str(line.get("pipeline") or "").split())  # one line, whoever named
    return line | {"message": f"{name}: {line['message']}"} if name else line


def _refuse_no_schedules(schedules: Schedules, faulty: dict[str, str]) -> None:
    if not schedules and faulty:
        words = (Problem(f"{name}: {why}.") for name, why in faulty.items())
        raise UserError.several([*words])
    if not schedules:
        raise UserError(
            "No pipeline has a schedule; add one in pipelines.yaml, for example"
            ' `schedule: {cron: "0 6 * * 1", timezone: UTC}` or'
            " `schedule: {interval: 3600}` (seconds)."
        )


@contextlib.contextmanager
def _single_service(server: PrefectServer) -> Iterator[None]:
    """Hold the project's lock of `serve` until this process ends."""
    server.home.mkdir(parents=True, exist_ok=True)
    lock_path = server.home.parent / "serve.lock"
    descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.closing(os.fdopen(descriptor)) as lock_file:
        other = read_serving(server.home)
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            served = bool(other)
        except BlockingIOError:
            served = True
        if served:
            who = f" ({other['process']} at {other['url']})" if other else ""
            raise UserError(
                f"This project is being served already{who}; end that one first."
            )
        yield
