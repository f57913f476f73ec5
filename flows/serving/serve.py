"""Run pipelines on their schedules until interrupted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO, Any

from curvote.errors import Problem, UserError
from curvote.flows.environment import SERVED, variable
from curvote.flows.output import lines
from curvote.flows.server.private import PrefectServer, served_by
from curvote.flows.serving import systemd
from curvote.flows.serving.children import Child, runner_of
from curvote.flows.serving.firing import in_words
from curvote.flows.serving.told import Told
from curvote.flows.serving.watched_file import sound
from curvote.flows.supervisor import Schedules, Supervisor
from curvote.run.config.runtime import seconds
from curvote.run.project import Project

FLOW = "curvote.flows.serving.scheduled:scheduled"
# Nobody watches a scheduled run: what fails has to be seen, in its log.
# A stage's errors are not: Prefect would write out words that may hold values.
_SEEN = {
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_LOGGING_LOGGERS_PREFECT_FLOW_RUNS_LEVEL": "WARNING",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "true",
}
# SIGTERM to the end: what runs is told, then killed; then the server.
_RUNNER_ENDS, _SERVER_ENDS = 4.0, 2.5


def serve(
    project: Project,
    schedules: Schedules,
    flow: str = FLOW,
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
    _refuse_none(schedules, faulty)
    root = project.root.resolve()
    server = PrefectServer(root, port=port, kept=_kept(project))
    with _sole(server), server, variable(SERVED, str(root)):
        # Imports Prefect, while the server starts.
        schedules = sound(schedules, faulty)
        _refuse_none(schedules, faulty)
        told = _told(project, metrics_port)
        with _supervisor(project, schedules, flow, server, told) as supervisor:
            _announce(told, server, schedules)
            supervisor.tell_faulty(faulty)
            _watch(supervisor)


@contextlib.contextmanager
def _supervisor(
    project: Project, schedules: Schedules, flow: str, server: PrefectServer, told: Told
) -> Iterator[Supervisor]:
    """Yield what watches the server, once that is up, and the runner to come."""
    child, pipe = server.up(), lines.Pipe(project.state / "serve.pipe")
    runner = runner_of(server.home, pipe.variables() | _SEEN)
    try:
        yield Supervisor(
            project=project,
            url=server.url,
            schedules=schedules,
            flow=flow,
            launch=server.launch,
            server=child,
            runner=runner,
            pipe=pipe,
            told=told,
        )
    finally:
        pipe.close()


def _watch(supervisor: Supervisor) -> None:
    """Let the supervisor run until a signal comes, then end its children."""

    def stop(*_: object) -> None:
        supervisor.stop()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        supervisor.run()
    finally:
        systemd.notify("STOPPING=1", "STATUS=ending")
        supervisor.told.say("serve ends")
        _end(supervisor.runner, supervisor.server)
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(runner: Child, server: Child | None) -> None:
    """End the run under way first: it has a last word for the server."""
    runner.end(_RUNNER_ENDS)
    if server is not None:
        server.end(_SERVER_ENDS)


def _kept(project: Project) -> int | None:
    from curvote.run.config.file import PipelinesFile

    if not project.pipelines_file.exists():
        return None
    span = PipelinesFile(project).runtime().retention.runs
    return None if span is None else seconds(span)


def _told(project: Project, metrics_port: int | None) -> Told:
    from curvote.flows.metrics import Figures, open_page
    from curvote.flows.notices import tell_missed

    figures = Figures(project, serving=True)
    if metrics_port is not None:
        open_page(figures, metrics_port)

    log = lines.Kept(project.state / "serve.log")

    def show(line: dict[str, Any]) -> None:
        log.keep(_named(line))
        _show(line)

    def say(text: str, level: str = "info", pipeline: str | None = None) -> None:
        show(lines.line(text, level, pipeline=pipeline))

    def missed(name: str, fact: dict[str, Any]) -> None:
        figures.count("missed_firings", name, fact["count"])
        # Whoever is told may take long; schedules do not wait for it.
        given = project, say, name, fact
        Thread(target=tell_missed, args=given, daemon=True).start()

    restarted = partial(figures.count, "serve_restarts")
    return Told(line=show, missed=missed, restarted=restarted)


def _show(line: dict[str, Any]) -> None:
    """Print a line of a run, or one of our own."""
    with contextlib.suppress(OSError):  # a full disk under the log ends no schedule
        lines.show(line if lines.is_json() else _named(line), sys.stdout)


def _named(line: dict[str, Any]) -> dict[str, Any]:
    """Put the pipeline's name before what is said of it."""
    name = " ".join(str(line.get("pipeline") or "").split())  # one line, whoever named
    return line | {"message": f"{name}: {line['message']}"} if name else line


def _announce(told: Told, server: PrefectServer, schedules: Schedules) -> None:
    if server.is_ours:
        server.announce()
        pages, file = server.url.removesuffix("/api"), server.secret_file
        how = f"log in with the line in {file}, which each start makes anew"
        told.say(f"Prefect: {pages} ({how})")
    for name, settings in schedules.items():
        told.say(in_words(settings), pipeline=name)


def _refuse_none(schedules: Schedules, faulty: dict[str, str]) -> None:
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
def _sole(server: PrefectServer) -> Iterator[None]:
    """Hold the project's one place for a `serve`, until this process ends."""
    descriptor = os.open(_lock(server.home), os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.closing(os.fdopen(descriptor)) as held:
        other = served_by(server.home)
        if other or not _taken(held):
            who = f" ({other['process']} at {other['url']})" if other else ""
            raise UserError(
                f"This project is being served already{who}; end that one first."
            )
        yield


def _taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock(home: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    return home.parent / "serve.lock"
