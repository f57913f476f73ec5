"""Launch of Prefect's server as a process, and notifications to systemd."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from curvote.base.errors import UserError
from curvote.flows.databases import PREFECT
from curvote.flows.machine import stop_cause
from curvote.flows.server.access import SERVER_VARIABLE
from curvote.pipeline.config.project import Project

# A child that had them would speak for the service.
SYSTEMD_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


def notify_systemd(*words: str) -> None:
    """Send words such as ``READY=1`` to systemd; without a socket do nothing.

    A name that begins with @ is one of Linux's abstract sockets.
    """
    place = os.environ.get("NOTIFY_SOCKET")
    if not place:
        return
    address = f"\0{place[1:]}" if place.startswith("@") else place
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door,
    ):
        door.settimeout(1.0)
        door.sendto("\n".join(words).encode(), address)


def watchdog_seconds() -> float | None:
    """Return the seconds of silence after which systemd ends this process.

    See sd_watchdog_enabled(3).
    """
    limit, whom = os.environ.get("WATCHDOG_USEC"), os.environ.get("WATCHDOG_PID")
    if not limit or whom not in (None, str(os.getpid())):
        return None
    return int(limit) / 1e6 if limit.isdecimal() else None


READY: Final = http.client.OK
# It answers, but cannot reach its database.
DATABASE_DOWN: Final = http.client.SERVICE_UNAVAILABLE


def api_status(url: str, timeout: float = 2.0) -> int | None:
    """Return the status of the API: READY or DATABASE_DOWN; None: no answer."""
    return _get_status(url, "ready", timeout)


def is_healthy(url: str, timeout: float) -> bool:
    """Return whether the API reports health within ``timeout`` seconds.

    One request is enough: the socket listens before the server is up, and is closed
    when the server fails to start.
    """
    return _get_status(url, "health", timeout) == http.client.OK


def _get_status(url: str, page: str, timeout: float) -> int | None:
    address = urlsplit(url)
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(address.netloc, timeout=timeout)
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/{page}")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


LOOPBACK = "127.0.0.1"
_LOG_LIMIT = 1_000_000
# Parts the output of one start from that of another.
_START_MARK = "-- a server is started"
# What Prefect's own service for its database refuses.
_MIN_RETENTION = 3601
_VACUUM = "PREFECT_SERVER_SERVICES_DB_VACUUM"


@dataclass(frozen=True)
class ServerLaunch:
    """The settings with which a server is started, any number of times.

    ``pages``: with Prefect's pages and its scheduler; ``keep_seconds``: for how many
    seconds it keeps the runs that have ended, None: for ever.
    """

    home: Path
    secret: str
    pages: bool = False
    keep_seconds: int | None = None

    def with_secret(self, secret: str) -> ServerLaunch:
        """Return the same launch for a server that requires ``secret``."""
        return replace(self, secret=secret)

    @property
    def log(self) -> Path:
        """The file of the server's output."""
        return self.home / "server.log"

    def spawn(self, listening: int) -> subprocess.Popen[bytes]:
        """Start the server on a socket that listens already."""
        command = [
            sys.executable,
            "-m",
            "curvote.flows.server.process",
            "--fd",
            str(listening),
        ]
        with open_log(self.log) as log:
            log.write(f"{_START_MARK}\n".encode())
            log.flush()
            return subprocess.Popen(
                [*command, "--services"] if self.pages else command,
                cwd=Path(__file__).parents[3],  # the folder that holds curvote
                env=child_environment(
                    {SERVER_VARIABLE: self.secret, **self.retention()}
                ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listening],
                start_new_session=True,  # Ctrl-C goes to the parent only
            )

    def retention(self) -> dict[str, str]:
        """Return Prefect's variables for the retention of its runs."""
        if self.keep_seconds is None:
            return {}
        seconds = max(self.keep_seconds, _MIN_RETENTION)
        return {
            f"{_VACUUM}_ENABLED": "flow_runs",
            f"{_VACUUM}_RETENTION_PERIOD": str(seconds),
        }

    def end_reason(self) -> str:
        """Return in a line why the server ended, and the remedy."""
        project = Project(self.home.parents[2])
        if known_cause := stop_cause(project):
            return str(known_cause).rstrip(".")
        lines = _log_tail(self.log)
        if known_there := PREFECT.server_problem(project, lines):
            return known_there
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{self.log} ends: {last[:200]}" if last else f"{self.log} says no more"


def open_log(path: Path) -> BinaryIO:
    """Open a log for appending; a long one is emptied first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    log = path.open("ab")
    if log.tell() > _LOG_LIMIT:
        log.truncate(0)
    return log


def child_environment(more: dict[str, str]) -> dict[str, str]:
    """Return the environment of a child, without systemd's variables."""
    inherited = {
        name: v for name, v in os.environ.items() if name not in SYSTEMD_VARIABLES
    }
    return inherited | more


def listen(port: int) -> socket.socket:
    """Return a socket on a port of this machine; 0: any free one."""
    try:
        return socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "a port is 0 to 65535"
        raise UserError(
            f"Port {port} cannot be used: {reason}. Choose another with --port."
        ) from error


def _log_tail(log: Path, max_bytes: int = 20_000) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - max_bytes))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return text.rpartition(_START_MARK)[2].splitlines()
