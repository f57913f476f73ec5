"""A Prefect server of somebody's own with a process worker, and orders to it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curvote.flows.server.launch import api_status, listen
from curvote.pipeline.config.project import Project
from tests.processes import until
from tests.served import LONG_ENOUGH, Served

POOL = "machines"
_OVER = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@dataclass(frozen=True)
class OwnServer(Served):
    """A plain `prefect server start` with a worker; commands run in the project."""

    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def command(self, *words: str) -> str:
        """Return what a command of this environment prints, errors too."""
        command, root = [sys.executable, "-m", *words], self.project.root
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        where = {"cwd": root, "env": self.environment, "text": True}
        return str(subprocess.run(command, check=False, **streams, **where).stdout)

    def order(self, name: str, **order: Any) -> dict[str, Any]:
        """Order a run of a deployment, as Prefect's form does; return it when over."""
        _, _, found = self.ask("GET", f"/deployments/name/{name}")
        place = f"/deployments/{found['id']}/create_flow_run"
        status, _, run = self.ask("POST", place, order)
        return self.wait(run["id"]) if status < 400 else {"refused": run}

    def retry(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """Retry a run as the button of its page does; return it when over."""
        state = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}, "force": True}
        self.ask("POST", f"/flow_runs/{run['id']}/set_state", state)
        return self.wait(run["id"])

    def wait(self, run: str) -> dict[str, Any]:
        """Return a flow run once it is over."""
        seen: list[dict[str, Any]] = []

        def is_over() -> bool:
            seen.append(self.ask("GET", f"/flow_runs/{run}")[2])
            return seen[-1]["state"]["type"] in _OVER

        assert until(is_over, LONG_ENOUGH), self.log.read_text()
        return seen[-1]

    def of_run(self, kind: str, run: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the task_runs, artifacts or logs of a flow run."""
        ids = {"any_": [run["id"]]}
        wanted = {"logs": {"flow_run_id": ids}, "flow_runs": {"id": ids}}
        return list(self.ask("POST", f"/{kind}/filter", wanted)[2])


@contextmanager
def own_server(root: Path, state: Path) -> Iterator[OwnServer]:
    """Start a server and a worker with nothing but Prefect's own commands."""
    with listen(0) as door:
        port = door.getsockname()[1]
    ours = ("PREFECT_", "CURVOTE_STATE", "MLFLOW_")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    variables = {"HOME": str(state), "SERVER_ANALYTICS_ENABLED": "false"}
    variables |= {"API_URL": f"http://127.0.0.1:{port}/api", "CLI_COLORS": "false"}
    prefect = {f"PREFECT_{name}": value for name, value in variables.items()}
    more = {"DO_NOT_TRACK": "1", "NO_PROXY": "127.0.0.1"}
    environment = inherited | prefect | more
    state.mkdir(parents=True)
    server = OwnServer(Project(root), port, state / "log", environment)
    with ExitStack() as stack:
        log = stack.enter_context(server.log.open("w"))

        def start(*words: str) -> None:
            command, streams = [sys.executable, "-m", "prefect", *words], (log, log)
            started = subprocess.Popen(
                command, -1, None, None, *streams, cwd=state, env=environment
            )
            stack.callback(_end, started)

        start("server", "start", "--port", str(port))
        assert until(lambda: api_status(server.url) == 200, LONG_ENOUGH)
        server.command("prefect", "work-pool", "create", POOL, "--type", "process")
        start("worker", "start", "--pool", POOL)
        yield server


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process as its owner would; a worker may not listen to that."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(15)
    process.kill()
    process.wait()
