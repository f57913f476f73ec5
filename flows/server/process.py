"""Prefect's API server, in a process that ends when the one that started it does.

Run by `curvote.flows.server.private.PrefectServer`; standard input is a pipe that only
the parent holds, and ``--fd`` the listening socket.
"""

from __future__ import annotations

import argparse
import gc
import os
import select
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from curvote.errors import InternalError
from curvote.flows.environment import locked
from curvote.flows.server.access import SERVER_VARIABLE

if TYPE_CHECKING:
    import uvicorn

GRACE = 5.0
_LEAN = {
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
    "PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_API_DATABASE_MIGRATE_ON_START": "false",
    # Many task runs in one statement: thousands do not queue up.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
}
# Nothing here needs them: no workers, automations, pauses or pages with late runs.
_NEVER = (
    "CLEANUP_RECONCILER",
    "EVENT_PERSISTER",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "TRIGGERS",
)
_SCHEDULING = ("CANCELLATION_CLEANUP", "SCHEDULER")
_PROMPT = {
    "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "1",
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "15",
}


def main() -> None:
    """Serve the API until standard input ends or a SIGTERM comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--services", action="store_true")
    arguments = parser.parse_args()
    server: list[uvicorn.Server] = []
    threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    listening = socket.socket(fileno=arguments.fd)
    address = "http://{}:{}".format(*listening.getsockname())
    os.environ.update(_settings(address, services=arguments.services))
    # Importing the server builds thousands of long-lived classes.
    gc.disable()
    server.append(_build(address))
    gc.freeze()
    gc.enable()
    server[0].run(sockets=[listening])


def _settings(address: str, *, services: bool) -> dict[str, str]:
    """Return what this server is to do; the task-run recorder is always on.

    The names are those that Prefect reads first: no variable of the user's opens what
    is closed here.
    """
    if not os.environ.get(SERVER_VARIABLE):
        raise InternalError(f"{SERVER_VARIABLE} is not set: anybody could give orders")
    closed = {
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": address,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
    }
    off = _NEVER if services else (*_NEVER, *_SCHEDULING)
    disabled = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in off}
    if not services:
        disabled["PREFECT_SERVER_EVENTS_STREAM_OUT_ENABLED"] = "false"
        return _LEAN | _PROMPT | disabled | closed
    return _LEAN | _PROMPT | disabled | closed | _pages(address)


def _pages(address: str) -> dict[str, str]:
    """Return the settings of Prefect's pages, which else ask port 4200."""
    return {
        "PREFECT_SERVER_UI_ENABLED": "true",
        "PREFECT_SERVER_UI_API_URL": f"{address}/api",
        # By default they are written into the installed package.
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": f"{os.environ['PREFECT_HOME']}/ui",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }


def _build(address: str) -> uvicorn.Server:
    import uvicorn
    from prefect.server.api.server import create_app

    from curvote.flows.server.gate import Gate

    _migrate()
    config = uvicorn.Config(
        Gate(create_app(final=True), address, os.environ[SERVER_VARIABLE]),
        log_level="warning",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def _migrate() -> None:
    """Create or upgrade the database, one process at a time."""
    import asyncio

    from prefect.server.database import provide_database_interface

    with locked(Path(os.environ["PREFECT_HOME"]) / "migrate.lock"):
        asyncio.run(provide_database_interface().create_db())


def _end_with_parent(server: list[uvicorn.Server]) -> None:
    """Shut down once standard input is at its end or the parent has gone.

    A worker that the parent forked may hold the pipe open, hence the second sign.
    """
    parent = os.getppid()
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], 1.0)
        if readable and not os.read(0, 4096):
            break
    if server:
        _await_recorder()
        server[0].should_exit = True
        time.sleep(GRACE)
    os._exit(0)


def _await_recorder(limit: float = 3.0) -> None:
    """Give the task-run recorder time to take what was sent."""
    from prefect.server.utilities.messaging.memory import METRICS

    counts = METRICS["events"]
    end = time.monotonic() + limit
    seen = -1
    while time.monotonic() < end:
        before, seen = seen, counts["consumed"]
        if before == seen >= counts["published"]:
            return
        time.sleep(0.1)


if __name__ == "__main__":
    main()
