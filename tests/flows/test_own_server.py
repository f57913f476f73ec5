"""Runs that a Prefect server of somebody's own orders, through a process worker.

It starts a plain server, a worker and a process for each run, as a user would: a stub
would not show what Prefect makes of a signature, a page or an exception.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from curvote.flows.environment import SERVED_VARIABLE
from curvote.flows.server.launch import api_status, listen
from curvote.pipeline.config.yaml_document import as_yaml
from curvote.pipeline.store import records
from tests import plain, production
from tests.house import ROOT
from tests.processes import until
from tests.served import LONG_ENOUGH, Served

pytestmark = pytest.mark.faults

WEEKLY = {"schedule": {"cron": "0 6 * * 1"}}
PIPELINES = {"tiny": plain.FEW | WEEKLY, "real": production.REAL | WEEKLY}
WARNING = 30
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
        how: Any = {"stdout": -1, "stderr": -2, "cwd": root, "env": self.environment}
        return str(subprocess.run(command, check=False, text=True, **how).stdout)

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

        def found() -> dict[str, Any]:
            return dict(self.ask("GET", f"/flow_runs/{run}")[2])

        ended = until(lambda: found()["state"]["type"] in _OVER, LONG_ENOUGH)
        assert ended, self.log.read_text()
        return found()

    def of_run(self, kind: str, run: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the task_runs, artifacts or logs of a flow run."""
        ids = {"any_": [run["id"]]}
        wanted = {"logs": {"flow_run_id": ids}, "flow_runs": {"id": ids}}
        return list(self.ask("POST", f"/{kind}/filter", wanted)[2])


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process as its owner would; a worker may not listen to that."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(15)
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """Return a server that knows the flow by both ways of registering it.

    Server and worker are started with nothing but Prefect's own commands.
    """
    folder = tmp_path_factory.mktemp("own")
    project, state = plain.write(folder / "project", **PIPELINES), folder / "state"
    (project.root / "flows").symlink_to(ROOT / "flows")
    with listen(0) as door:
        port = door.getsockname()[1]
    ours = ("PREFECT_", "CURVOTE_STATE", "MLFLOW_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    environment |= {
        "PREFECT_HOME": str(state),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLI_COLORS": "false",
        "DO_NOT_TRACK": "1",
        "NO_PROXY": "127.0.0.1",
    }
    state.mkdir()
    server = OwnServer(project, port, state / "log", environment)
    with ExitStack() as stack:
        log = stack.enter_context(server.log.open("w"))

        def start(*words: str) -> None:
            command = [sys.executable, "-m", "prefect", *words]
            where: Any = {"cwd": state, "env": environment, "stdout": log}
            stack.callback(end, subprocess.Popen(command, stderr=log, **where))

        start("server", "start", "--port", str(port))
        assert until(lambda: api_status(server.url) == 200, LONG_ENOUGH)
        server.command("prefect", "work-pool", "create", POOL, "--type", "process")
        start("worker", "start", "--pool", POOL)
        for flow in ("chain.py:chain", "serving/scheduled_run.py:scheduled"):
            words = f"deploy flows/{flow} -n X --pool {POOL}".split()
            assert "successfully created" in server.command("prefect", *words)
        said = server.command("curvote.cli", "deploy", "--pool", POOL, "--register")
        assert "registered at" in said
        yield server


def stages(server: OwnServer, run: dict[str, Any]) -> dict[str, set[str]]:
    """Return the states of a run's tasks, those of its latest try, by stage."""
    found: dict[str, set[str]] = {}
    for task in server.of_run("task_runs", run):
        if task["flow_run_run_count"] == run["run_count"]:
            found.setdefault(task["name"].split()[0], set()).add(task["state_name"])
    return found


def test_a_run_tells_on_its_page_and_a_stage_is_rerun(own: OwnServer) -> None:
    """No warning stands in its log; artifacts say what was done and what came out.

    Then `only: [train]` as the form sends it; a stage that does not exist is refused.
    """
    run = own.order("curvote/tiny")
    assert run["state"]["type"] == "COMPLETED", run["state"]
    (record,) = records.load_records(own.project, "tiny")
    told = {a["key"]: a["data"] for a in own.of_run("artifacts", run) if a["key"]}
    assert {*told} == {"tiny-plan", "tiny-report", "tiny-summary"}
    assert "| train | computed | never run |" in told["tiny-plan"]
    assert f"MLflow: run `{record.mlflow_run}`" in told["tiny-summary"]
    assert not [e for e in own.of_run("logs", run) if e["level"] >= WARNING]
    tags = [set(task["tags"]) for task in own.of_run("task_runs", run)]
    cell = {"protocol=mrma", "epsilon=4", "learner=centroid"}
    assert {"stage=train", "side=server", *cell} in tags
    form = {"pipeline": "tiny", "overrides": [], "only": ["train"], "seed": None}
    run = own.order("curvote/X", parameters=form)
    assert stages(own, run) == {"train": {"Completed"}, "mlflow": {"Completed"}}
    assert own.order("curvote/X", parameters=form | {"only": ["trian"]})["refused"]


def test_a_failed_run_goes_on_by_retry(own: OwnServer) -> None:
    """Its page says in a sentence why it failed; Retry reuses what was done."""
    place = own.project.artifacts / "evaluate"
    place.rename(place.with_name("aside"))
    place.write_text("no folder")
    run = own.order("curvote/tiny", parameters={"overrides": ["seed=8"]})
    assert "nothing was stored" in run["state"]["message"]
    place.unlink()
    again = own.retry(run)
    done = stages(own, again)
    assert again["state"]["type"] == "COMPLETED"
    assert (done["train"], done["evaluate"]) == ({"Reused"}, {"Completed"})


def test_production_is_refused_until_the_project_names_the_server(
    own: OwnServer,
) -> None:
    """Nothing is drawn or reserved, whatever an order says; then it is drawn once."""
    root = str(own.project.root)
    given = {"pipeline": "real", "project": root}
    variables = {"env": {SERVED_VARIABLE: root, "CURVOTE_STATE": f"{root}/data/state"}}
    orders: list[tuple[str, dict[str, Any]]] = [
        ("curvote/real", {"job_variables": variables}),
        ("scheduled/X", {"parameters": given, "job_variables": variables}),
        ("curvote/real", {"parameters": {"overrides": ["mode=study"]}}),
        ("curvote/tiny", {"parameters": {"overrides": ["mode=production"]}}),
    ]
    said = [own.order(name, **order)["state"]["message"] for name, order in orders]
    assert ["own Prefect server" in text for text in said] == [True, True, False, False]
    assert ["override changes" in text for text in said] == [False, False, True, True]
    assert not own.project.ledger.exists()
    assert not records.load_records(own.project, "real", "completed")
    runtime = {"prefect": {"api": own.url.replace("http", "HTTP") + "/"}}
    text = as_yaml({"runtime": runtime, "pipelines": PIPELINES})
    own.project.pipelines_file.write_text(text)
    run = own.order("curvote/real")
    assert run["state"]["type"] == "COMPLETED", run["state"]
    (told,) = (a for a in own.of_run("artifacts", run) if a["key"] == "real-plan")
    assert "| privatize | training client | 60 | 4 | drawn |" in told["data"]
    assert production.ledger_entries(own.project)
