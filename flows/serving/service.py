"""Service `curvote serve`: pipelines run on their schedules until interrupted."""

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

from curvote.base.errors import Problem, UserError
from curvote.flows import lines
from curvote.flows.environment import SERVED_VARIABLE, variable_set
from curvote.flows.server import launch
from curvote.flows.server.children import Child, runner_child
from curvote.flows.server.private import PrefectServer, read_serving
from curvote.flows.serving.schedules import describe_schedule, valid_schedules
from curvote.flows.serving.supervisor import Announcer, Schedules, Supervisor
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import parse_span

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
    server = PrefectServer(root, port=port, keep_seconds=_retention_seconds(project))
    with _single_service(server), server, variable_set(SERVED_VARIABLE, str(root)):
        # Imports Prefect, while the server starts.
        schedules = valid_schedules(schedules, faulty)
        _refuse_no_schedules(schedules, faulty)
        announcer = _make_announcer(project, metrics_port)
        with _make_supervisor(
            project, schedules, flow, server, announcer
        ) as supervisor:
            _announce_start(announcer, server, schedules)
            supervisor.report_faulty(faulty)
            _run_supervisor(supervisor)


@contextlib.contextmanager
def _make_supervisor(
    project: Project,
    schedules: Schedules,
    flow: str,
    server: PrefectServer,
    announcer: Announcer,
) -> Iterator[Supervisor]:
    """Yield a supervisor of the running server and of a runner."""
    child, pipe = server.await_child(), lines.LinePipe(project.state / "serve.pipe")
    runner = runner_child(server.home, pipe.variables() | _LOG_SETTINGS)
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
            announcer=announcer,
        )
    finally:
        pipe.close()


def _run_supervisor(supervisor: Supervisor) -> None:
    """Run the supervisor until a signal comes, then end its children."""

    def stop_supervisor(*_: object) -> None:
        supervisor.stop()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, stop_supervisor) for number in numbers}
    try:
        supervisor.run()
    finally:
        launch.notify_systemd("STOPPING=1", "STATUS=ending")
        supervisor.announcer.announce("serve ends")
        _end_children(supervisor.runner, supervisor.server)
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_children(runner: Child, server: Child | None) -> None:
    """End the runner first, as its run still reports to the server."""
    runner.end(_RUNNER_SECONDS)
    if server is not None:
        server.end(_SERVER_SECONDS)


def _retention_seconds(project: Project) -> int | None:
    from curvote.pipeline.config.file import PipelinesFile

    if not project.pipelines_file.exists():
        return None
    span = PipelinesFile(project).runtime().retention.runs
    return None if span is None else parse_span(span)


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
    """Print a line of a run or of the service."""
    with contextlib.suppress(OSError):  # a full disk under the log ends no schedule
        lines.print_line(line if lines.is_json() else _with_pipeline(line), sys.stdout)


def _with_pipeline(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with the pipeline's name before its message."""
    name = " ".join(str(line.get("pipeline") or "").split())  # one line, whoever named
    return line | {"message": f"{name}: {line['message']}"} if name else line


def _announce_start(
    announcer: Announcer, server: PrefectServer, schedules: Schedules
) -> None:
    if server.is_ours:
        server.announce()
        pages, file = server.url.removesuffix("/api"), server.secret_file
        how = f"log in with the line in {file}, which each start makes anew"
        announcer.announce(f"Prefect: {pages} ({how})")
    for name, settings in schedules.items():
        announcer.announce(describe_schedule(settings), pipeline=name)


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
    descriptor = os.open(_lock_path(server.home), os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.closing(os.fdopen(descriptor)) as lock_file:
        other = read_serving(server.home)
        if other or not _try_lock(lock_file):
            who = f" ({other['process']} at {other['url']})" if other else ""
            raise UserError(
                f"This project is being served already{who}; end that one first."
            )
        yield


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_path(home: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    return home.parent / "serve.lock"
