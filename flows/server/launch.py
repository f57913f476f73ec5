"""Launch of Prefect's server as a process, and notifications to systemd."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

from curvote.base.errors import UserError
from curvote.flows.environment import SERVER_VARIABLE
from curvote.flows.machine import PREFECT, stop_cause
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
_LOG_LIMIT, _MAX_TAIL = 1_000_000, 20_000
# Parts the output of one start from that of another.
_START_MARK = "-- a server is started"
# What Prefect's own service for its database refuses.
_MIN_RETENTION = 3601
_VACUUM = "PREFECT_SERVER_SERVICES_DB_VACUUM"


@dataclass(frozen=True)
class ServerLaunch:
    """The settings with which a server is started, any number of times.

    ``pages``: with Prefect's pages and its scheduler; ``keep_seconds``: for how many
    seconds it keeps the runs that have ended, None: for ever. ``warm_seconds``: how
    long it waits for a further command once nobody uses it; 0: it ends with this one.
    """

    home: Path
    secret: str
    pages: bool = False
    keep_seconds: int | None = None
    warm_seconds: int = 0

    @property
    def log(self) -> Path:
        """The file of the server's output."""
        return self.home / "server.log"

    def spawn(self, listening: int) -> subprocess.Popen[bytes]:
        """Start the server on a socket that listens already."""
        command = [sys.executable, "-m", "curvote.flows.server.process"]
        command += ["--fd", str(listening), *(["--services"] if self.pages else [])]
        command += ["--warm", str(self.warm_seconds)] if self.warm_seconds else []
        variables = {SERVER_VARIABLE: self.secret} | self.retention()
        folder = Path(__file__).parents[3]  # that holds curvote
        more = {"cwd": folder, "pass_fds": [listening]}
        return _spawn(command, self.log, variables, f"{_START_MARK}\n", **more)

    def retention(self) -> dict[str, str]:
        """Return Prefect's variables for the retention of its runs."""
        if self.keep_seconds is None:
            return {}
        seconds = max(self.keep_seconds, _MIN_RETENTION)
        return {
            f"{_VACUUM}_ENABLED": "flow_runs",
            f"{_VACUUM}_RETENTION_PERIOD": str(seconds),
        }

    @property
    def project(self) -> Project:
        """The project whose server it is."""
        return Project(self.home.parents[2])

    def database_problem(self) -> str | None:
        """Return what keeps any server from its database; None: nothing known."""
        problem = PREFECT.problem(self.project)
        return problem and "; ".join(PREFECT.problem_and_remedy(self.project, problem))

    def end_reason(self) -> str:
        """Return in a line why the server ended, and the remedy."""
        if cause := stop_cause(self.project):
            return str(cause).rstrip(".")
        lines: list[str] = []
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - _MAX_TAIL))
            text = file.read().decode(errors="replace")
            lines = text.rpartition(_START_MARK)[2].splitlines()
        if known_there := PREFECT.server_problem(self.project, lines):
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
    inherited = os.environ.items()
    return {name: v for name, v in inherited if name not in SYSTEMD_VARIABLES} | more


def _spawn(
    command: list[str],
    log: Path,
    variables: dict[str, str],
    mark: str = "",
    **more: Any,
) -> subprocess.Popen[bytes]:
    """Start a child: standard input is a pipe, Ctrl-C goes to the parent only.

    The end of that pipe ends a child, but for a server that is kept warm.
    """
    with open_log(log) as file:
        file.write(mark.encode())
        file.flush()
        return subprocess.Popen(
            command,
            env=child_environment(variables),
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            start_new_session=True,
            **more,
        )


def listen(port: int) -> socket.socket:
    """Return a socket on a port of this machine; 0: any free one."""
    try:
        return socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "a port is 0 to 65535"
        raise UserError(
            f"Port {port} cannot be used: {reason}. Choose another with --port."
        ) from error


FIRST_WAIT_SECONDS = 1.0
MAX_WAIT_SECONDS = 60.0
# Who has lived for so long has not fallen at once.
_STEADY_SECONDS = 120.0


class Child:
    """A process that is started again when it ends, after waits that double.

    Args:
        called: what lines call it.
        spawn: what starts it, with standard input a pipe: its end ends the process.
    """

    def __init__(
        self, called: str, spawn: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        self.called = called
        self.spawn = spawn
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.started = self.due = 0.0
        self._wait = FIRST_WAIT_SECONDS

    def start(self) -> None:
        """Start the process now."""
        self.process = self.spawn()
        self.started = time.monotonic()
        self.starts += 1

    def is_started(self) -> bool:
        """Return whether a process was started and not forgotten."""
        return self.process is not None

    def end_reason(self) -> str:
        """Return how the process ended, "" while it runs or is not started."""
        code = None if self.process is None else self.process.poll()
        if code is None:
            return ""
        if code >= 0:
            return f"ended with exit code {code}"
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
        return f"was ended by signal {-code}"

    def has_finished(self) -> bool:
        """Return whether the process ended by itself with exit code 0."""
        return self.process is not None and self.process.poll() == 0

    def schedule_restart(self) -> float:
        """Forget the process; return the seconds until its restart."""
        self.end(0.0)
        now = time.monotonic()
        if now - self.started > _STEADY_SECONDS:
            self._wait = FIRST_WAIT_SECONDS
        wait, self._wait = self._wait, min(2 * self._wait, MAX_WAIT_SECONDS)
        self.due = now + wait
        return wait

    def send_message(self, message: dict[str, Any]) -> None:
        """Write a line of JSON to the process's standard input."""
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.write(f"{json.dumps(message)}\n".encode())
                self.process.stdin.flush()

    def leave(self) -> None:
        """Forget the process, which goes on without this one."""
        process, self.process = self.process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.returncode = process.poll() or 0  # or Popen warns of it

    def end(self, seconds: float) -> None:
        """Close standard input, wait, then kill the process group."""
        process, self.process = self.process, None
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def runner_child(home: Path, variables: dict[str, str]) -> Child:
    """Return the runner of schedules as a child."""
    command = [sys.executable, "-P", "-m", "curvote.flows.serving.runner"]
    log = home / "runner.log"
    return Child("the runner of schedules", lambda: _spawn(command, log, variables))
