"""Processes of the intake service: socket, workers, log and shutdown."""

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

from curvote.base.durable import private_folder
from curvote.base.errors import UserError
from curvote.pipeline.config.project import Project

if TYPE_CHECKING:
    from starlette.applications import Starlette


# Tells a worker which project and pipeline it serves.
_SERVICE_VARIABLE: Final = "CURVOTE_INTAKE_SERVICE"
_COUNTS_PREFIX: Final = "intake-counts-"
# So many connections at once, for each worker; more are told to come back.
MAX_CONNECTIONS: Final = 2000


def serve_intake(
    project: Project, pipeline: str, host: str, port: int, workers: int
) -> None:
    """Serve a pipeline's intake until a signal ends it.

    UserError: the port is taken, or the intake cannot be opened.
    """
    from curvote.intake.box import Intake

    private_folder(project.state)
    with Intake(project.intake):
        pass  # what is wrong with it is said now
    counts = _counts_folder(project.state, workers)
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=kind, backlog=2048)
    except OSError as error:
        raise UserError(
            f"the port {port} on {host}: {error.strerror or error}. Name another with"
            " --port, or end what holds it."
        ) from None
    with listener, counts:
        os.environ[_SERVICE_VARIABLE] = json.dumps([str(project.root), pipeline])
        name, actual_port = listener.getsockname()[:2]
        host_text = f"[{name}]" if ":" in name else name
        log_line(f"takes envelopes for {pipeline} on http://{host_text}:{actual_port}")
        _run_server(listener, workers)
        log_line("ended: what was accepted is kept")


def _run_server(listener: socket.socket, workers: int) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    config = uvicorn.Config(
        f"{__name__}:app",
        factory=True,
        workers=workers,
        http="curvote.flows.intake.service:HeadInTime",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
    )
    # The server raises its signal once more when it is done: that must not kill it.
    before = [signal.signal(s, lambda *_: None) for s in _END_SIGNALS]
    try:
        if workers == 1:
            uvicorn.Server(config).run(sockets=[listener])
        else:
            Multiprocess(config, sockets=[listener]).run()
    finally:
        for number, handler in zip(_END_SIGNALS, before, strict=True):
            signal.signal(number, handler)


_END_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def app() -> Starlette:
    """Return the service of one worker."""
    import multiprocessing

    from curvote.flows.intake import service
    from curvote.intake.box import Intake
    from curvote.intake.group import GroupCommit
    from curvote.messages.message import parse_messages

    root, pipeline = json.loads(os.environ[_SERVICE_VARIABLE])
    project, metrics = Project(Path(root)), service.IntakeMetrics()
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        has_handler = name != "uvicorn.error"  # which goes on to "uvicorn"
        logger.handlers, logger.propagate = (
            [_PlainHandler()] if has_handler else [],
            not has_handler,
        )
        logger.setLevel(logging.WARNING)
    if parent := multiprocessing.parent_process():  # this ends when that is gone

        def watch() -> None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=watch, daemon=True).start()
    sys.setswitchinterval(0.001)  # requests do not wait 5 ms for the intake's thread

    def opening() -> Intake:
        return Intake(project.intake)

    group = GroupCommit(
        opening,
        parse_messages,
        committed=metrics.count_transaction,
        failed=lambda text: log_line(text or "goes on: the intake can be written"),
    )
    published = service.PublishedTasks(project.published(pipeline))
    proofs = service.ReceiptProofs(opening)
    return service.IntakeService(group, metrics, published, proofs).app()


def log_line(text: str) -> None:
    """Write a line of the log about the service, never about a request.

    One that cannot be written, on a full disk, stops nobody.
    """
    with suppress(OSError):
        print(f"curvote intake: {text}", file=sys.stderr, flush=True)


class _PlainHandler(logging.Handler):
    """Warnings of the libraries as one line each, without traceback or values."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        first = str(record.msg).partition("\n")[0]  # then connections are described
        log_line(f"{first}{f' ({kind.__name__})' if kind else ''}")


@contextmanager
def _counts_folder(state: Path, workers: int) -> Iterator[None]:
    """Create a folder in which several workers count, until the service ends.

    Its lock says that its service lives; those of killed ones are deleted. Services
    that begin at once do this one after the other.
    """
    private_folder(state)
    with ExitStack() as counting:
        with _folder_locked(state, fcntl.LOCK_EX):
            for leftover in state.glob(f"{_COUNTS_PREFIX}*"):
                with suppress(FileNotFoundError), _folder_locked(leftover) as is_free:
                    if is_free:
                        shutil.rmtree(leftover, ignore_errors=True)
            if workers > 1:
                temporary = tempfile.TemporaryDirectory(
                    prefix=_COUNTS_PREFIX, dir=state
                )
                folder = counting.enter_context(temporary)
                counting.enter_context(_folder_locked(Path(folder)))
                os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # read when imported
        yield


@contextmanager
def _folder_locked(
    folder: Path, kind: int = fcntl.LOCK_EX | fcntl.LOCK_NB
) -> Iterator[bool]:
    """Lock a folder; yield whether this process got the lock."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, kind)
            locked = True
        except BlockingIOError:
            locked = False
        yield locked
    finally:
        os.close(handle)
