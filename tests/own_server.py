"""A Prefect server of somebody's own with a process worker, and orders to it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from curvote.flows.server.launch import listen
from tests.processes import until

POOL = "machines"
LONG_ENOUGH = 240.0
_OVER = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@dataclass(frozen=True)
class OwnServer:
    """A plain `prefect server start` with a worker; commands run in ``root``."""

    root: Path
    url: str
    environment: Mapping[str, str]

    def command(self, *words: str, check: bool = True) -> str:
        """Return what a command of this environment prints, errors too."""
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.root,
            env=self.environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert not check or done.returncode == 0, done.stdout
        return done.stdout

    def ask(self, path: str, body: Any = None) -> Any:
        """Return the API's answer; without a body it is read from there."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(
            f"{self.url}{path}", data, {"Content-Type": "application/json"}
        )
        for left in range(30, -1, -1):
            try:
                with urlopen(request, timeout=60) as answer:
                    return json.loads(answer.read() or "null")
            except HTTPError as error:
                if error.code != 503 or not left:  # its database is busy
                    raise
                time.sleep(1)
        return None

    def order(self, deployment: str, **order: Any) -> dict[str, Any]:
        """Order a run of a deployment, as Prefect's form does; return it when over."""
        found = self.ask(f"/deployments/name/curvote/{deployment}")
        run = self.ask(f"/deployments/{found['id']}/create_flow_run", order)
        return self.wait(run["id"])

    def retry(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """Retry a run as the button of its page does; return it when over."""
        state = {"type": "SCHEDULED", "name": "AwaitingRetry"}
        self.ask(f"/flow_runs/{run['id']}/set_state", {"state": state, "force": True})
        return self.wait(run["id"])

    def wait(self, run: str) -> dict[str, Any]:
        """Return a flow run once it is over."""
        end = time.monotonic() + LONG_ENOUGH
        while time.monotonic() < end:
            found: dict[str, Any] = self.ask(f"/flow_runs/{run}")
            if found["state"]["type"] in _OVER:
                return found
            time.sleep(1)
        raise TimeoutError(f"{run} is not over")

    def of_run(self, kind: str, run: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the task_runs, artifacts or logs of a flow run."""
        if kind == "logs":
            wanted = {"logs": {"flow_run_id": {"any_": [run["id"]]}}}
        else:
            wanted = {"flow_runs": {"id": {"any_": [run["id"]]}}}
        return list(self.ask(f"/{kind}/filter", wanted))


@contextmanager
def own_server(root: Path, state: Path) -> Iterator[OwnServer]:
    """Start a server and a worker with nothing but Prefect's own commands."""
    with listen(0) as door:
        port = door.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    ours = ("PREFECT_", "CURVOTE_STATE", "MLFLOW_")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    environment = inherited | {
        "PREFECT_HOME": str(state),
        "PREFECT_API_URL": url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLI_COLORS": "false",
        "DO_NOT_TRACK": "1",
        "NO_PROXY": "127.0.0.1",
    }
    server = OwnServer(root, url, environment)
    state.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        log = stack.enter_context((state / "log").open("w"))

        def start(*words: str) -> None:
            command = [sys.executable, "-m", "prefect", *words]
            started = subprocess.Popen(
                command, cwd=state, env=environment, stdout=log, stderr=log
            )
            stack.callback(started.wait)
            stack.callback(started.terminate)

        start("server", "start", "--port", str(port))
        assert until(lambda: _answers(server), LONG_ENOUGH), (state / "log").read_text()
        server.command("prefect", "work-pool", "create", POOL, "--type", "process")
        start("worker", "start", "--pool", POOL)
        yield server


def _answers(server: OwnServer) -> bool:
    try:
        return bool(server.ask("/health"))
    except OSError:
        return False
