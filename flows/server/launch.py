"""Starting Prefect's server as a process of its own, and saying why it ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from curvote.errors import UserError
from curvote.flows.examining.databases import PREFECT
from curvote.flows.server.access import SERVER_VARIABLE
from curvote.flows.serving.systemd import VARIABLES
from curvote.flows.stopped import cause
from curvote.run.project import Project

HERE = "127.0.0.1"
_LOG_LIMIT = 1_000_000
# Parts the output of one start from that of another.
_BEGUN = "-- a server is started"
# What Prefect's own service for its database refuses.
_LEAST_KEPT = 3601
_VACUUM = "PREFECT_SERVER_SERVICES_DB_VACUUM"


@dataclass(frozen=True)
class Launch:
    """How a server is started, any number of times.

    ``pages``: with Prefect's pages and its scheduler; ``kept``: for how many seconds
    it keeps the runs that have ended, None: for ever.
    """

    home: Path
    secret: str
    pages: bool = False
    kept: int | None = None

    def under(self, secret: str) -> Launch:
        """Return the same for a server that asks for ``secret``."""
        return replace(self, secret=secret)

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.home / "server.log"

    def spawn(self, listening: int) -> subprocess.Popen[bytes]:
        """Start it on a listening socket: there is no port to lose to another."""
        command = [
            sys.executable,
            "-m",
            "curvote.flows.server.process",
            "--fd",
            str(listening),
        ]
        with open_log(self.log) as log:
            log.write(f"{_BEGUN}\n".encode())
            log.flush()
            return subprocess.Popen(
                [*command, "--services"] if self.pages else command,
                cwd=Path(__file__).parents[3],  # the folder that holds curvote
                env=for_child({SERVER_VARIABLE: self.secret, **self.retention()}),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listening],
                start_new_session=True,  # Ctrl-C goes to the parent only
            )

    def retention(self) -> dict[str, str]:
        """Return what tells Prefect how long to keep runs in its own database."""
        if self.kept is None:
            return {}
        seconds = max(self.kept, _LEAST_KEPT)
        return {
            f"{_VACUUM}_ENABLED": "flow_runs",
            f"{_VACUUM}_RETENTION_PERIOD": str(seconds),
        }

    def why(self) -> str:
        """Return in a line why it ended or did not start, and the way out."""
        project = Project(self.home.parents[2])
        if known := cause(project):
            return str(known).rstrip(".")
        lines = _tail(self.log)
        if known_there := PREFECT.elsewhere(project, lines):
            return known_there
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{self.log} ends: {last[:200]}" if last else f"{self.log} says no more"


def open_log(path: Path) -> BinaryIO:
    """Open a log at its end; one that has grown long begins anew."""
    path.parent.mkdir(parents=True, exist_ok=True)
    log = path.open("ab")
    if log.tell() > _LOG_LIMIT:
        log.truncate(0)
    return log


def for_child(more: dict[str, str]) -> dict[str, str]:
    """Return our environment for a child, which must not speak to systemd for us."""
    mine = {name: v for name, v in os.environ.items() if name not in VARIABLES}
    return mine | more


def listen(port: int) -> socket.socket:
    """Take a port of this machine, 0: any free one. UserError: it cannot be used."""
    try:
        return socket.create_server((HERE, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "a port is 0 to 65535"
        raise UserError(
            f"Port {port} cannot be used: {reason}. Choose another with --port."
        ) from error


def _tail(log: Path, most: int = 20_000) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - most))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return text.rpartition(_BEGUN)[2].splitlines()
