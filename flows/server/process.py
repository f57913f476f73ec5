"""Server process of Prefect's API, which ends with the process that started it.

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
from curvote.flows.environment import file_locked
from curvote.flows.server.access import SERVER_VARIABLE

if TYPE_CHECKING:
    import uvicorn

GRACE_SECONDS = 5.0
_MINIMAL_SETTINGS = {
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
_DISABLED_SERVICES = (
    "CLEANUP_RECONCILER",
    "EVENT_PERSISTER",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "TRIGGERS",
)
_SCHEDULING_SERVICES = ("CANCELLATION_CLEANUP", "SCHEDULER")
_PROMPT_SETTINGS = {
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
    os.environ.update(_server_settings(address, services=arguments.services))
    # Importing the server builds thousands of long-lived classes.
    gc.disable()
    server.append(_build_server(address))
    gc.freeze()
    gc.enable()
    server[0].run(sockets=[listening])


def _server_settings(address: str, *, services: bool) -> dict[str, str]:
    """Return Prefect's variables for this server, which keep it closed.

    The names are those that Prefect reads first: no variable of the user's opens what
    is closed here.
    """
    if not os.environ.get(SERVER_VARIABLE):
        raise InternalError(f"{SERVER_VARIABLE} is not set: anybody could give orders")
    closed = {
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": address,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
    }
    off = (
        _DISABLED_SERVICES if services else (*_DISABLED_SERVICES, *_SCHEDULING_SERVICES)
    )
    disabled = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in off}
    if not services:
        disabled["PREFECT_SERVER_EVENTS_STREAM_OUT_ENABLED"] = "false"
        return _MINIMAL_SETTINGS | _PROMPT_SETTINGS | disabled | closed
    return (
        _MINIMAL_SETTINGS
        | _PROMPT_SETTINGS
        | disabled
        | closed
        | _page_settings(address)
    )


def _page_settings(address: str) -> dict[str, str]:
    """Return the settings of Prefect's pages, which else ask port 4200."""
    return {
        "PREFECT_SERVER_UI_ENABLED": "true",
        "PREFECT_SERVER_UI_API_URL": f"{address}/api",
        # By default they are written into the installed package.
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": f"{os.environ['PREFECT_HOME']}/ui",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }


def _build_server(address: str) -> uvicorn.Server:
    import uvicorn
    from prefect.server.api.server import create_app

    from curvote.flows.server.gate import RequestGate

    _migrate_database()
    config = uvicorn.Config(
        RequestGate(create_app(final=True), address, os.environ[SERVER_VARIABLE]),
        log_level="warning",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def _migrate_database() -> None:
    """Create or upgrade the database, one process at a time."""
    import asyncio

    from prefect.server.database import provide_database_interface

    with file_locked(Path(os.environ["PREFECT_HOME"]) / "migrate.lock"):
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
        time.sleep(GRACE_SECONDS)
    os._exit(0)


def _await_recorder(limit: float = 3.0) -> None:
    """Wait until the task-run recorder has taken all events, with a limit."""
    from prefect.server.utilities.messaging.memory import METRICS

    counts = METRICS["events"]
    end = time.monotonic() + limit
    consumed = -1
    while time.monotonic() < end:
        before, consumed = consumed, counts["consumed"]
        if before == consumed >= counts["published"]:
            return
        time.sleep(0.1)


if __name__ == "__main__":
    main()
