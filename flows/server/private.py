"""Private Prefect server for one command, restarted when it dies."""

import contextlib
import fcntl
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from curvote.base.errors import InternalError, UserError
from curvote.flows import environment, lines
from curvote.flows.environment import variable_set
from curvote.flows.server import launch as launching
from curvote.flows.server.launch import Child, ServerLaunch, is_healthy

_POLL_SECONDS = 0.5
# A server that cannot be kept alive is given up; the run then says why.
_MAX_STARTS = 4


@contextmanager
def kept_alive(child: Child) -> Iterator[None]:
    """Restart ``child`` whenever it ends, three times at most."""
    over = threading.Event()

    def keep_alive() -> None:
        while not over.wait(_POLL_SECONDS):
            how = child.end_reason()
            if not how:
                continue
            if child.starts == _MAX_STARTS:
                lines.write_line(f"{child.called} {how} and is given up", "error")
                return
            wait = child.schedule_restart()
            lines.write_line(f"{child.called} {how}; it is started again", "warning")
            if over.wait(wait):
                return
            try:
                child.start()
            except OSError as error:  # no space for its log, or no more processes
                words = f"{child.called} is given up: {error.strerror}"
                lines.write_line(words, "error")
                return

    thread = threading.Thread(target=keep_alive, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


START_TIMEOUT = 90.0
STOP_TIMEOUT = 9.0
_ADDRESS_FILE = "server.json"
# The servers that this process has started, with the folders of their projects.
_started: dict[str, Path] = {}


class PrefectServer:
    """A Prefect server that is started, awaited, and ended with this process.

    As a context manager it starts on entry, to be waited for when it is needed, and
    stops on exit; one that dies meanwhile is started again. An address that the user
    put into ``PREFECT_API_URL``, or a server that ``curvote serve`` runs for this
    project, is used as it is and left running. Whoever asks our own must know a secret
    that each start makes anew: one that was stolen is of no use to anybody later.

    Args:
        root: the project folder.
        port: of Prefect's pages, which come with its scheduler (0: any free one);
            None: neither.
        keep_seconds: how long it keeps runs that have ended; None: for ever.
        warm_seconds: how long it waits for a further command after the last one, which
            finds and uses it; 0: it ends with this one.
    """

    def __init__(
        self,
        root: Path,
        *,
        port: int | None = None,
        keep_seconds: int | None = None,
        warm_seconds: int = 0,
    ) -> None:
        self.home = environment.prepare_environment(root) / "prefect"
        # Where `curvote serve` names its server, and leaves what that asks for.
        self.address_file = self.home / _ADDRESS_FILE
        self.secret_file = self.home.parent / "serve.secret"
        self.port = port
        self.url = ""
        self.launch = ServerLaunch(
            self.home, "", port is not None, keep_seconds, warm_seconds
        )
        # Held for as long as this: what is asked while a server that has died is
        # started again waits here.
        self._listening: socket.socket | None = None
        self._secret: str | None = None
        self._child: Child | None = None
        self._undo = contextlib.ExitStack()

    @property
    def is_ours(self) -> bool:
        """Whether this object started the server, and so ends it."""
        return self._child is not None

    def start(self) -> Self:
        """Launch the server and return at once; ``PREFECT_API_URL`` is set.

        UserError: the port cannot be used.
        """
        self.url = os.environ.get("PREFECT_API_URL", "")
        serving = None if self.url else read_serving(self.home)
        if serving and is_healthy(serving["url"], 2.0):  # that of `curvote serve`
            self.url = serving["url"]
            self._secret = environment.read_secret(self.secret_file)
        if not self.url and self.launch.warm_seconds:
            self._find_warm()
        if not self.url:
            self._secret = environment.new_secret()
            self.launch = launch = replace(self.launch, secret=self._secret)
            self._listening = launching.listen(self.port or 0)
            # A socket that outlives it: whoever asks while it is away waits.
            descriptor = self._listening.fileno()
            self._child = Child("Prefect's server", lambda: launch.spawn(descriptor))
            self._child.start()
            port = self._listening.getsockname()[1]
            self.url = f"http://{launching.LOOPBACK}:{port}/api"
            _started[self.url] = self.home
            self._undo.callback(_started.pop, self.url, None)
        self._undo.enter_context(variable_set("PREFECT_API_URL", self.url))
        if self._secret:
            self._undo.enter_context(
                variable_set(environment.CLIENT_VARIABLE, self._secret)
            )
        return self

    def _find_warm(self) -> None:
        """Use the server that an earlier command left, and keep it until this ends."""
        address = self.home / environment.WARM_SERVER
        lock = self._undo.enter_context(address.with_suffix(".lock").open("a"))
        fcntl.flock(lock, fcntl.LOCK_SH)  # of one that ends it waits for the end
        warm = read_serving(self.home, address.name)
        if warm and is_healthy(warm["url"], 2.0):
            self.url = warm["url"]
            self._secret = json.loads(environment.read_secret(address))["secret"]

    def await_child(self) -> Child | None:
        """Return the server as a child, once it answers; None: it is not ours.

        Raises:
            UserError: its database cannot be used, or no answer within 90 seconds;
                says why.
        """
        child, end = self._child, time.monotonic() + START_TIMEOUT
        # Said at once: the server itself falls over its database seconds later.
        cause = self.launch.database_problem() if child else None
        answers = child is None and is_healthy(self.url, START_TIMEOUT)
        while child and not (cause or child.end_reason()) and time.monotonic() < end:
            if answers := is_healthy(self.url, 2.0):
                break
            time.sleep(0.05)
        if not answers:
            failure = (
                f"No Prefect server answers at {self.url}; unset PREFECT_API_URL to let"
                " curvote start its own."
            )
            if child is not None:
                cause = cause or self.launch.end_reason()
                failure = f"Prefect's server did not start: {cause}."
            self.stop()
            raise UserError(failure)
        return child

    def wait(self) -> Self:
        """Return when the server answers; flows of this process will use it.

        UserError: as of `await_child`.
        """
        from prefect import settings  # while the server is still starting

        child = self.await_child()
        if child is not None:
            self._undo.enter_context(kept_alive(child))
        # The heartbeat adds a second to each flow and cannot be switched off by a
        # variable; the rest is said again because Prefect reads variables once.
        ours: dict[Any, Any] = {settings.PREFECT_API_URL: self.url}
        ours[settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY] = None
        if self._secret:
            ours[settings.PREFECT_API_AUTH_STRING] = self._secret
        self._undo.enter_context(settings.temporary_settings(ours))
        return self

    def stop(self) -> None:
        """Send what is still queued and end the server, if it is ours."""
        child, self._child = self._child, None
        try:
            # Through queued events task runs reach the server.
            worker = sys.modules.get("prefect.events.worker")
            if child is not None and worker is not None:
                worker.EventsWorker.drain_all(timeout=5)
        finally:
            self._undo.close()
            if child is not None and self.launch.warm_seconds:
                child.leave()
            elif child is not None:
                child.end(STOP_TIMEOUT)
            if self._listening is not None:
                self._listening.close()

    def announce(self) -> None:
        """Let other commands of this project use this server until it stops.

        So may whoever reads the file that holds its secret: the same user alone.
        """
        if self._secret is None:
            raise InternalError("this server was started by somebody else")
        entry = {"url": self.url, "process": environment.process_tag()}
        environment.write_secret(self.secret_file, self._secret)
        self._undo.callback(self.secret_file.unlink, missing_ok=True)
        self.address_file.write_text(json.dumps(entry))
        self._undo.callback(self.address_file.unlink, missing_ok=True)

    def __enter__(self) -> Self:
        """Start the server; it has yet to be waited for."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """End the server."""
        self.stop()


def api_url() -> str:
    """Return the address of the Prefect server that this process talks to."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return str(client.api_url)


def is_own_server(state: Path, url: str) -> bool:
    """Return whether a project's own server has this address.

    It was started by this process, or by a ``curvote serve`` that lives. A file of the
    project says so: no variable, which whoever orders a run may set.
    """
    home, address = state.resolve() / "prefect", url.rstrip("/")
    entries = (read_serving(home, n) for n in (_ADDRESS_FILE, environment.WARM_SERVER))
    named = [entry["url"] for entry in entries if entry]
    return _started.get(address) == home or address in named


def read_serving(home: Path, name: str = _ADDRESS_FILE) -> dict[str, str] | None:
    """Return ``{url, process}`` of a live ``curvote serve``; None: none.

    Or of the server that an earlier run left, if that is asked for by ``name``.
    """
    try:
        entry: dict[str, str] = json.loads((home / name).read_text())
    except (OSError, ValueError):
        return None
    return entry if environment.is_alive(entry["process"]) else None
