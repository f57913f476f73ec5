"""A private Prefect server for as long as one command runs."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from curvote.errors import UserError
from flows.environment import is_alive, prepare, process_tag

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun, State

START_TIMEOUT = 90.0
STOP_TIMEOUT = 9.0
_LOG_LIMIT = 1_000_000
# A run that nobody tagged yet is given this long to come to its first line.
_UNTAGGED_GRACE = 120.0


class PrefectServer:
    """Start Prefect's API, wait for it, and end it with this process.

    As a context manager it starts on entry, to be waited for when it is needed, and
    stops on exit. An address that the user put into ``PREFECT_API_URL``, or a server
    that ``curvote serve`` runs for this project, is used as it is and left running.

    Args:
        root: the project folder.
        services: run Prefect's scheduler too.
    """

    def __init__(self, root: Path, *, services: bool = False) -> None:
        self.home = prepare(root) / "prefect"
        self.services = services
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._undo = contextlib.ExitStack()

    @property
    def log(self) -> Path:
        """Where the server writes its warnings."""
        return self.home / "server.log"

    @property
    def address_file(self) -> Path:
        """Where ``curvote serve`` names its server while that is alive."""
        return self.home / "server.json"

    @property
    def is_ours(self) -> bool:
        """Whether this object started the server, and so ends it."""
        return self._process is not None

    def start(self) -> Self:
        """Launch the server and return at once; ``PREFECT_API_URL`` is set."""
        self.url = os.environ.get("PREFECT_API_URL") or self._served() or self._launch()
        self._undo.enter_context(_variable("PREFECT_API_URL", self.url))
        return self

    def wait(self) -> Self:
        """Return when the server answers; flows of this process will use it.

        Raises:
            UserError: no answer within 90 seconds; holds the end of the log.
        """
        # Imported here, while the server is still starting.
        from prefect.settings import (
            PREFECT_API_URL,
            PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
            temporary_settings,
        )

        if not answers(self.url, START_TIMEOUT):
            failure = self._failure()
            self.stop()
            raise UserError(failure)
        # The heartbeat adds a second to each flow and cannot be switched off by a
        # variable; the address is said again because Prefect reads variables once.
        self._undo.enter_context(
            temporary_settings(
                {PREFECT_API_URL: self.url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
            )
        )
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
        """Let other commands of this project use this server until it stops."""
        entry = {"url": self.url, "process": process_tag()}
        self.address_file.write_text(json.dumps(entry))
        self._undo.callback(self.address_file.unlink, missing_ok=True)

    def __enter__(self) -> Self:
        """Start the server; it has yet to be waited for."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server."""
        self.stop()

    def _served(self) -> str | None:
        """Return the address of a living ``curvote serve`` of this project."""
        entry = served_by(self.home)
        return entry["url"] if entry and answers(entry["url"], 2.0) else None

    def _launch(self) -> str:
        self.home.mkdir(parents=True, exist_ok=True)
        with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
            self._process = self._spawn(listening.fileno())
            return f"http://127.0.0.1:{listening.getsockname()[1]}/api"

    def _spawn(self, listening: int) -> subprocess.Popen[bytes]:
        """Hand the listening socket over: there is no port to lose to another."""
        command = [sys.executable, "-m", "flows.server_process", "--fd", str(listening)]
        with self.log.open("ab") as log:
            if log.tell() > _LOG_LIMIT:
                log.truncate(0)
            return subprocess.Popen(
                [*command, "--services"] if self.services else command,
                cwd=Path(__file__).parents[1],
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
        end = self.log.read_text(errors="replace").splitlines()[-15:]
        return "\n".join([f"Prefect's server did not start; {self.log} ends:", *end])


def served_by(home: Path) -> dict[str, str] | None:
    """Return ``{url, process}`` of the living ``curvote serve``, if there is one."""
    try:
        entry: dict[str, str] = json.loads((home / "server.json").read_text())
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


def mark_alive() -> bool:
    """Tag the flow run under way with this process, so that no sweep takes it.

    To be called as the first line of a flow; says whether the run was scheduled. Such
    a run has a process of its own, and also ends when ``curvote serve`` is killed.
    """
    from prefect.client.orchestration import get_client
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return False
    run = context.flow_run
    with get_client(sync_client=True) as client:
        client.update_flow_run(run.id, tags={*run.tags, process_tag()})
    scheduled = run.deployment_id is not None
    if scheduled:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    return scheduled


def sweep() -> int:
    """Mark the flow runs that a killed process left behind as Crashed; count them."""
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    state: State[object] = Crashed(message="The process that ran this flow has ended.")
    with get_client(sync_client=True) as client:
        stale = [run.id for run in _unfinished() if _is_stale(run)]
        for run_id in stale:
            client.set_flow_run_state(run_id, state, force=True)
    return len(stale)


def _unfinished() -> list[FlowRun]:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.client.schemas.sorting import FlowRunSort

    kinds = FlowRunFilterStateType(
        any_=[StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
    )
    wanted = FlowRunFilter(state=FlowRunFilterState(type=kinds))
    with get_client(sync_client=True) as client:
        # The synchronous client sends its own defaults as null, which is refused.
        return client.read_flow_runs(
            flow_run_filter=wanted, sort=FlowRunSort.ID_DESC, limit=200
        )


def _is_stale(run: FlowRun) -> bool:
    from prefect.types._datetime import now

    owners = [tag for tag in run.tags if tag.startswith("pid:")]
    if owners:
        return not any(is_alive(tag) for tag in owners)
    since = run.state.timestamp if run.state else run.updated
    return since is not None and (now("UTC") - since).total_seconds() > _UNTAGGED_GRACE


def _end_with_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(2)
    os._exit(1)


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


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
