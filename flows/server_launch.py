"""Starting Prefect's server as a process of its own, and saying why it ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from curvote.errors import UserError
from flows.access import SERVER_VARIABLE
from flows.systemd import VARIABLES

HERE = "127.0.0.1"
_LOG_LIMIT = 1_000_000
# Parts the output of one start from that of another.
_BEGUN = "-- a server is started"
# What Prefect's own service for its database refuses.
_LEAST_KEPT = 3601
_KEPT = {
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "flow_runs",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": "",
}
_DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"


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

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.home / "server.log"

    def spawn(self, listening: int) -> subprocess.Popen[bytes]:
        """Start it on a listening socket: there is no port to lose to another."""
        command = [sys.executable, "-m", "flows.server_process", "--fd", str(listening)]
        with open_log(self.log) as log:
            log.write(f"{_BEGUN}\n".encode())
            log.flush()
            return subprocess.Popen(
                [*command, "--services"] if self.pages else command,
                cwd=Path(__file__).parents[1],
                env=for_child({SERVER_VARIABLE: self.secret, **self._retention()}),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listening],
                start_new_session=True,  # Ctrl-C goes to the parent only
            )

    def _retention(self) -> dict[str, str]:
        if self.kept is None:
            return {}
        enabled, period = _KEPT
        return {enabled: _KEPT[enabled], period: str(max(self.kept, _LEAST_KEPT))}

    def why(self) -> str:
        """Return in a line why it ended or did not start, and the way out."""
        return reason(self.log, self.home / "prefect.db")


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


# What the log says, in words, with the way out.
_DAMAGED = "{place} is destroyed; `curvote doctor --fix` sets it aside, no result is lost"
_REASONS = {
    "file is not a database": _DAMAGED,
    "disk image is malformed": _DAMAGED,
    "Can't locate revision": "{place} is of a newer version of Prefect;"
    " install that one again, or move the file away: no result is lost",
    "disk is full": "no space is left for {place}; `curvote gc` frees some",
    "No space left": "no space is left for {place}; `curvote gc` frees some",
    "readonly database": "{place} cannot be written; make its folder writable",
    "unable to open database": "{place} cannot be opened; make its folder writable",
    "database is locked": "{place} is locked by another process; try again",
    "password authentication failed": "{place} refuses the password",
    "Connect call failed": "{place} does not answer; start it, or unset its variable",
    "Connection refused": "{place} does not answer; start it, or unset its variable",
    "Name or service not known": "{place} has an address that is not known",
}


def reason(log: Path, database: Path) -> str:
    """Return what the end of a server's log says: a known cause, or its last line."""
    lines = _tail(log)
    place = f"Prefect's database ({_named(database)})"
    for line in reversed(lines):
        for sign, words in _REASONS.items():
            if sign in line:
                return f"{words.format(place=place)} (see {log})"
    told = [line.strip() for line in lines if line.strip()]
    last = f": {told[-1][:200]}" if told else ""
    return f"the end of {log} says why{last}"


def _named(database: Path) -> str:
    """Return the file, or the variable that names another database."""
    theirs = os.environ.get(_DATABASE, "")
    return _DATABASE if theirs and "sqlite" not in theirs else str(database)


def _tail(log: Path, most: int = 20_000) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - most))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return text.rpartition(_BEGUN)[2].splitlines()
