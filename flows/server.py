"""A private Prefect server for as long as one command runs."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from curvote.errors import InternalError, UserError
from curvote.run.project import Project
from flows.access import (
    CLIENT_VARIABLE,
    SERVER_VARIABLE,
    leave_secret,
    new_secret,
    read_secret,
)
from flows.environment import is_alive, prepare, process_tag, variable
from flows.stopped import cause

HERE = "127.0.0.1"
START_TIMEOUT = 90.0
STOP_TIMEOUT = 9.0
_LOG_LIMIT = 1_000_000
_ADDRESS = "server.json"


class PrefectServer:
    """Start Prefect's API, wait for it, and end it with this process.

    As a context manager it starts on entry, to be waited for when it is needed, and
    stops on exit. An address that the user put into ``PREFECT_API_URL``, or a server
    that ``curvote serve`` runs for this project, is used as it is and left running.
    Whoever asks our own must know a secret that each start makes anew: one that was
    stolen is of no use to anybody later.

    Args:
        root: the project folder.
        port: of Prefect's pages, which come with its scheduler (0: any free one);
            None: neither.
    """

    def __init__(self, root: Path, *, port: int | None = None) -> None:
        self.home = prepare(root) / "prefect"
        self.log = self.home / "server.log"
        # Where `curvote serve` names its server, and leaves what that asks for.
        self.address_file = self.home / _ADDRESS
        self.secret_file = self.home.parent / "serve.secret"
        self.port = port
        self.url = ""
        self._secret: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._undo = contextlib.ExitStack()

    @property
    def is_ours(self) -> bool:
        """Whether this object started the server, and so ends it."""
        return self._process is not None

    def start(self) -> Self:
        """Launch the server and return at once; ``PREFECT_API_URL`` is set.

        UserError: the port cannot be used.
        """
        theirs = os.environ.get("PREFECT_API_URL")
        self.url = theirs or self._served() or self._launch()
        self._undo.enter_context(variable("PREFECT_API_URL", self.url))
        if self._secret:
            self._undo.enter_context(variable(CLIENT_VARIABLE, self._secret))
        return self

    def wait(self) -> Self:
        """Return when the server answers; flows of this process will use it.

        Raises:
            UserError: no answer within 90 seconds; says why, or how the log ends.
        """
        # Imported here, while the server is still starting.
        from prefect.settings import (
            PREFECT_API_AUTH_STRING,
            PREFECT_API_URL,
            PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
            temporary_settings,
        )

        if not answers(self.url, START_TIMEOUT):
            failure = self._failure()
            self.stop()
            raise UserError(failure)
        # The heartbeat adds a second to each flow and cannot be switched off by a
        # variable; the rest is said again because Prefect reads variables once.
        ours = {PREFECT_API_URL: self.url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
        if self._secret:
            ours[PREFECT_API_AUTH_STRING] = self._secret
        self._undo.enter_context(temporary_settings(ours))
        return self

    def stop(self) -> None:
        """Send what is still queued and end the server, if it is ours."""
        process, self._process = self._process, None
        try:
            if process is not None:
                _send_queued_events()
                _end(process)
        finally:
            self._undo.close()

    def announce(self) -> None:
        """Let other commands of this project use this server until it stops.

        So may whoever reads the file that holds its secret: the same user alone.
        """
        if self._secret is None:
            raise InternalError("this server was started by somebody else")
        entry = {"url": self.url, "process": process_tag()}
        leave_secret(self.secret_file, self._secret)
        self._undo.callback(self.secret_file.unlink, missing_ok=True)
        self.address_file.write_text(json.dumps(entry))
        self._undo.callback(self.address_file.unlink, missing_ok=True)

    def __enter__(self) -> Self:
        """Start the server; it has yet to be waited for."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """End the server."""
        self.stop()

    def _served(self) -> str | None:
        """Return the address of a living ``curvote serve`` of this project."""
        entry = served_by(self.home)
        if entry is None or not answers(entry["url"], 2.0):
            return None
        self._secret = read_secret(self.secret_file)
        return entry["url"]

    def _launch(self) -> str:
        self.home.mkdir(parents=True, exist_ok=True)
        self._secret = new_secret()
        with listen(self.port or 0) as listening:
            self._process = self._spawn(listening.fileno(), self._secret)
            return f"http://{HERE}:{listening.getsockname()[1]}/api"

    def _spawn(self, listening: int, secret: str) -> subprocess.Popen[bytes]:
        """Hand the listening socket over: there is no port to lose to another."""
        command = [sys.executable, "-m", "flows.server_process", "--fd", str(listening)]
        with self.log.open("ab") as log:
            if log.tell() > _LOG_LIMIT:
                log.truncate(0)
            return subprocess.Popen(
                command if self.port is None else [*command, "--services"],
                cwd=Path(__file__).parents[1],
                env={**os.environ, SERVER_VARIABLE: secret},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listening],
                start_new_session=True,  # Ctrl-C goes to the parent only
            )

    def _failure(self) -> str:
        if self._process is None:
            return (
                f"No Prefect server answers at {self.url}; unset PREFECT_API_URL to let"
                " curvote start its own."
            )
        known = cause(Project(self.home.parents[2]))
        if known:
            return str(known)
        said = self.log.read_text(errors="replace").strip().rpartition("\n")[2]
        return f"Prefect's server did not start; its log {self.log} ends: {said}"


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of this machine; else a UserError."""
    try:
        return socket.create_server((HERE, port), backlog=256)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such port"
        raise UserError(
            f"Port {port} cannot be used: {reason}. Choose another with --port."
        ) from error


def served_by(home: Path) -> dict[str, str] | None:
    """Return ``{url, process}`` of the living ``curvote serve``, if there is one."""
    try:
        entry: dict[str, str] = json.loads((home / _ADDRESS).read_text())
    except (OSError, ValueError):
        return None
    return entry if is_alive(entry["process"]) else None


def answers(url: str, timeout: float) -> bool:
    """Say whether the API at ``url`` reports health within ``timeout`` seconds.

    One request is enough: the socket listens before the server is up, and is closed
    when the server fails to start.
    """
    address = urlsplit(url)
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(address.netloc, timeout=timeout)
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _send_queued_events() -> None:
    """Task runs reach the server as events, after the fact."""
    worker = sys.modules.get("prefect.events.worker")
    if worker is not None:
        worker.EventsWorker.drain_all(timeout=5)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
