"""Who may give orders to `curvote serve`, and how little an order can say."""

import json
import os
import signal
import stat
import time
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from curvote.base.errors import UserError
from curvote.flows.environment import (
    SERVED_VARIABLE,
    read_secret,
    write_secret,
)
from curvote.flows.server.launch import listen
from curvote.flows.server.private import PrefectServer, read_serving
from curvote.flows.serving.service import serve_schedules
from curvote.pipeline.config.project import Project
from tests import plain, production
from tests.prepared import put_databases
from tests.processes import end_workers, processes_of, start_command, until
from tests.served import LONG_ENOUGH, Headers, Served, up

ROOT = Path(__file__).parents[2]
# It never comes due: what runs here was ordered.
NEVER = {"schedule": {"cron": "0 0 29 2 *"}}
ELSEWHERE = {"Origin": "http://page.example"}


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, databases: Path
) -> Iterator[Served]:
    """Serve a project with a pipeline in production; ``tiny`` has no schedule.

    By the command, once for all: its server, its runner and its runs are processes.
    MLflow is away: what is logged of runs is tested where that is what it is about.
    """
    root = tmp_path_factory.mktemp("served")
    project = plain.write(root, real=production.REAL | NEVER, tiny=plain.TINY)
    put_databases(databases, project)
    log = root / "serve.log"
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    with log.open("w") as file:
        away = {"PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
        how: dict[str, Any] = {"cwd": root, "stdout": file, "stderr": file}
        serving = start_command("serve", "--port", "0", env=environment | away, **how)
    try:
        yield up(project, log)
    finally:
        serving.send_signal(signal.SIGINT)
        serving.wait(30)
        for pid in processes_of(root):
            os.kill(pid, signal.SIGKILL)


def test_an_order_without_the_secret_is_refused(served: Served) -> None:
    """401, with or without Prefect's token, and nothing can be read either."""
    (deployment,) = served.deployments()
    path = f"/deployments/{deployment['id']}/create_flow_run"
    wrong = {"Authorization": f"Basic {b64encode(b'curvote:guess').decode()}"}
    token = {"Prefect-Csrf-Token": "guess", "Prefect-Csrf-Client": "me"}
    for headers in ({}, wrong, wrong | token, {"Authorization": "Basic \xff"}):
        status, answer, _ = served.ask("POST", path, {}, headers)
        assert status == 401
        assert not any(name.startswith("access-control") for name in answer)
    for path in ("/csrf-token?client=me", f"/deployments/{deployment['id']}"):
        assert served.ask("GET", path)[0] == 401
    assert served.ask("POST", path, {}, served.credentials())[0] == 403  # no token


@pytest.mark.parametrize(
    "headers",
    [ELSEWHERE, {"Origin": "null"}, {"Host": "page.example"}],
    ids=["page", "sandboxed page", "rebound name"],
)
def test_no_other_page_is_let_in(served: Served, headers: Headers) -> None:
    """Not even with the secret: no header tells a browser to hand the answer over."""
    known = served.logged_in()
    preflight = {"Access-Control-Request-Method": "POST"}
    for answer in (
        served.ask("POST", "/deployments/filter", {}, known | headers),
        served.ask("GET", "/health", headers=known | headers),
        served.ask("OPTIONS", "/deployments/filter", headers=preflight | headers),
    ):
        assert answer[0] == 403
        assert not any(name.startswith("access-control") for name in answer[1])
    own = {"Origin": f"http://127.0.0.1:{served.port}"}
    status, _, _ = served.ask("POST", "/deployments/filter", {}, known | own)
    assert status == 200


def test_sockets_are_held_to_the_same(served: Served) -> None:
    """No browser asks before it opens one: another page is refused, as is a guess."""
    place = f"ws://127.0.0.1:{served.port}/api/events/in"
    asks = {"subprotocols": [Subprotocol("prefect")]}
    with (
        pytest.raises(InvalidStatus, match="403"),
        connect(place, origin=Origin(ELSEWHERE["Origin"]), **asks),
    ):
        pass
    for token in (None, "curvote:guess"):
        with connect(place, **asks) as socket:
            socket.send(json.dumps({"type": "auth", "token": token}))
            with pytest.raises(ConnectionClosed, match="1008"):
                socket.recv(10)
    with connect(place, **asks) as socket:
        secret = read_secret(served.secret_file)
        socket.send(json.dumps({"type": "auth", "token": secret}))
        assert json.loads(socket.recv(10)) == {"type": "auth_success"}


def test_the_secret_lies_in_a_file_of_the_user_alone(served: Served) -> None:
    """The log says where it is and does not hold it; nor does any other file."""
    assert stat.S_IMODE(served.secret_file.stat().st_mode) == 0o600
    log = served.log.read_text()
    assert f"Prefect: http://127.0.0.1:{served.port}" in log
    assert str(served.secret_file) in log
    word = read_secret(served.secret_file).partition(":")[2].encode()
    others = [f for f in served.project.root.rglob("*") if f != served.secret_file]
    assert not [f for f in others if f.is_file() and word in f.read_bytes()]


def test_the_pages_are_there_and_ask_their_own_server(served: Served) -> None:
    """Prefect's pages are on, log in, and do not ask port 4200."""
    connection = HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request("GET", "/ui-settings")
    settings = json.loads(connection.getresponse().read())
    assert settings["api_url"] == f"http://127.0.0.1:{served.port}/api"
    assert settings["auth"] == "BASIC"
    assert settings["csrf_enabled"] is True
    connection.request("GET", "/dashboard", headers={"Accept": "text/html"})
    assert connection.getresponse().status in {200, 307}
    connection.close()


def test_the_users_other_commands_may_use_the_server(served: Served) -> None:
    """They read the file; they neither start another server nor end this one."""
    with PrefectServer(served.project.root) as server:
        server.wait()
        assert not server.is_ours
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            made = client.create_flow_from_name("of another command")
            assert client.read_flow_by_name("of another command").id == made
    assert read_serving(served.project.state / "prefect")


def test_a_second_serve_is_refused(served: Served) -> None:
    """The first one goes on; the message names it."""
    schedules = {"real": NEVER["schedule"]}
    with pytest.raises(UserError, match=rf"served already .*:{served.port}/api"):
        serve_schedules(served.project, schedules, port=0)
    assert read_serving(served.project.state / "prefect")


def ordered(served: Served, place: str, order: dict[str, Any]) -> str:
    """Give an order with the secret; return its run."""
    given = f"{place}/create_flow_run", order, served.logged_in()
    status, _, run = served.ask("POST", *given)
    assert status == 201, run
    return str(run["id"])


@pytest.mark.parametrize("n", [0, pytest.param(4, marks=pytest.mark.faults)])
def test_an_order_names_a_served_pipeline_and_no_more(served: Served, n: int) -> None:
    """Overrides, a new release, another pipeline, project or code are not obeyed.

    The last order is a plain one, given after its deployment was told to run other
    code: the pipeline runs as its file has it, and each client is asked once.
    """
    (deployment,) = served.deployments()
    context = {"pipeline": "real", "project": str(served.project.root)}
    greedy = {"overrides": ["epsilon=100000"], "new_release": True}
    refused: list[dict[str, Any]] = [
        {"parameters": context | greedy, "enforce_parameter_schema": False},
        {"parameters": context | {"pipeline": "tiny"}},
        {"parameters": context | {"project": "/"}},
        {"parameters": context | greedy},
    ]
    orders = [
        *refused[:n],
        {"parameters": context, "job_variables": {"env": {"CURVOTE_SERVED": "/"}}},
    ]
    place = f"/deployments/{deployment['id']}"
    steps = [{"prefect.deployments.steps.run_shell_script": {"script": "touch owned"}}]
    other = {"pull_steps": steps, "entrypoint": "os.getcwd", "path": "/"}
    assert served.ask("PATCH", place, other, served.logged_in())[0] == 204
    runs = [ordered(served, place, order) for order in orders]

    known = served.logged_in()

    def states() -> list[str]:
        time.sleep(1)  # what answers here has the runs to look after
        paths = (f"/flow_runs/{run}" for run in runs)
        return [served.ask("GET", p, headers=known)[2]["state_type"] for p in paths]

    final = {"COMPLETED", "FAILED", "CRASHED"}
    assert until(lambda: set(states()) <= final, LONG_ENOUGH), states()
    assert "COMPLETED" not in states()[:-1]
    assert states()[-1] == "COMPLETED", served.log.read_text()
    said = "tiny: failed: it carries no schedule in pipelines.yaml, so nothing runs"
    assert not n or said in served.log.read_text()
    entries = production.confirmed(served.project)
    assert {entry.budget.epsilon for entry in entries} == {4}
    assert {entry.facts["number"] for entry in entries} == {1}
    assert not list(served.project.root.rglob("owned"))


def test_neither_another_project_nor_an_unscheduled_pipeline_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever orders it: the served project is in the environment of the run.

    An order that says more is refused by the flow, whatever its deployment enforces.
    """
    from prefect.exceptions import SignatureMismatchError

    from curvote.flows.serving import scheduled_run

    context = {"pipeline": "tiny", "project": str(project.root)}
    assert scheduled_run.scheduled.should_validate_parameters
    assert scheduled_run.scheduled.validate_parameters(context) == context
    for more in ({"overrides": ["epsilon=100000"]}, {"new_release": True}):
        with pytest.raises(SignatureMismatchError):
            scheduled_run.scheduled.validate_parameters(context | more)
    monkeypatch.setenv(SERVED_VARIABLE, str(project.root))
    with pytest.raises(UserError, match=r"'/' is not served here"):
        scheduled_run._run_with_retries(Project(Path("/")), "tiny")
    with pytest.raises(UserError, match="carries no schedule"):
        scheduled_run._run_with_retries(project, "tiny")


def test_a_run_that_is_over_keeps_no_workers() -> None:
    """Nor, for the five minutes that they would idle, the next run from starting."""
    run = get_context("spawn").Process(target=end_workers)
    run.start()
    run.join(60)
    run.kill()
    assert run.exitcode == 0


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """The message names the option; no server starts."""
    schedules = {"demo": {"interval": 60}}
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"Port {port} .*another with --port"):
            serve_schedules(Project(tmp_path), schedules, port=port)
    assert not processes_of(tmp_path)


def test_a_secret_that_others_may_know_is_not_used(tmp_path: Path) -> None:
    """A laxer mode, a link and a missing file are refused, with the way out."""
    path = tmp_path / "serve.secret"
    path.write_text("known")
    write_secret(path, "curvote:new")
    assert read_secret(path) == "curvote:new"
    (tmp_path / "link").symlink_to(path)
    path.chmod(0o640)
    for place in (path, tmp_path / "link", tmp_path / "missing"):
        with pytest.raises(UserError, match="start it again"):
            read_secret(place)
