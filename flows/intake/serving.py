"""The processes of the intake's service: its socket, its log, its end."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from curvote.durable import owner_folder
from curvote.errors import UserError
from curvote.run.project import Project

if TYPE_CHECKING:
    from starlette.applications import Starlette

# Tells a worker which project and pipeline it serves.
_WHAT: Final = "CURVOTE_INTAKE_SERVICE"
_COUNTS: Final = "intake-counts-"
# So many connections at once, for each worker; more are told to come back.
CONNECTIONS: Final = 2000


def serve(project: Project, pipeline: str, host: str, port: int, workers: int) -> None:
    """Serve a pipeline's intake until a signal ends it.

    UserError: the port is taken, or the intake cannot be opened.
    """
    from curvote.server.intake import Intake

    owner_folder(project.state)
    with Intake(project.intake):
        pass  # what is wrong with it is said now
    with _listening(host, port) as listener, _counting(project.state, workers):
        os.environ[_WHAT] = json.dumps([str(project.root), pipeline])
        name, taken = listener.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        say(f"takes envelopes for {pipeline} on http://{shown}:{taken}")
        _run(listener, workers)
        say("ended: what was accepted is kept")


def _run(listener: socket.socket, workers: int) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    config = uvicorn.Config(
        f"{__name__}:app",
        factory=True,
        workers=workers,
        http="curvote.flows.intake_http:HeadInTime",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
    )
    # The server raises its signal once more when it is done: that must not kill it.
    before = [signal.signal(s, lambda *_: None) for s in _ENDS]
    try:
        if workers == 1:
            uvicorn.Server(config).run(sockets=[listener])
        else:
            Multiprocess(config, sockets=[listener]).run()
    finally:
        for number, handler in zip(_ENDS, before, strict=True):
            signal.signal(number, handler)


_ENDS: Final = (signal.SIGTERM, signal.SIGINT)


def app() -> Starlette:
    """Return the service of one worker."""
    from curvote.flows.intake.metrics import Metrics
    from curvote.flows.intake.tasks import Published
    from curvote.flows.intake_http import Service
    from curvote.protocols.checking import check_all
    from curvote.server.intake import Intake
    from curvote.server.intake_group import Group

    root, pipeline = json.loads(os.environ[_WHAT])
    project, metrics = Project(Path(root)), Metrics()
    _plain_log()
    _end_with_parent()
    sys.setswitchinterval(0.001)  # requests do not wait 5 ms for the intake's thread
    group = Group(
        lambda: Intake(project.intake),
        check_all,
        committed=metrics.committed,
        failed=lambda problem: say(problem or "goes on: the intake can be written"),
    )
    return Service(group, metrics, Published(project.published(pipeline))).app()


def say(text: str) -> None:
    """Write a line of the log: about the service, never about a request.

    One that cannot be written, on a full disk, stops nobody.
    """
    with suppress(OSError):
        print(f"curvote intake: {text}", file=sys.stderr, flush=True)


class _Plain(logging.Handler):
    """Warnings of the libraries as one line each, without traceback or values."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        first = str(record.msg).partition("\n")[0]  # then connections are described
        say(f"{first}{f' ({kind.__name__})' if kind else ''}")


def _plain_log() -> None:
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
        logger.setLevel(logging.WARNING)
    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).addHandler(_Plain())
    logging.getLogger("uvicorn.error").propagate = True


def _end_with_parent() -> None:
    """End this worker when the process that started it is gone."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=kind, backlog=2048)
    except OSError as error:
        raise UserError(
            f"the port {port} on {host}: {error.strerror or error}. Name another with"
            " --port, or end what holds it."
        ) from None
    with listener:
        yield listener


@contextmanager
def _counting(state: Path, workers: int) -> Iterator[None]:
    """Give several workers a folder to count in, which no worker's end takes away.

    Its lock says that its service lives; those of killed ones are deleted. Services
    that begin at once do this one after the other.
    """
    owner_folder(state)
    with ExitStack() as counting:
        with _locked(state, fcntl.LOCK_EX):
            for left in state.glob(f"{_COUNTS}*"):
                with suppress(FileNotFoundError), _locked(left) as mine:
                    if mine:
                        shutil.rmtree(left, ignore_errors=True)
            if workers > 1:
                made = tempfile.TemporaryDirectory(prefix=_COUNTS, dir=state)
                folder = counting.enter_context(made)
                counting.enter_context(_locked(Path(folder)))
                os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # read when imported
        yield


@contextmanager
def _locked(folder: Path, kind: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> Iterator[bool]:
    """Lock a folder, and say whether nobody else has; or wait for it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _lock(handle, kind)
    finally:
        os.close(handle)


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind)
    except BlockingIOError:
        return False
    return True
