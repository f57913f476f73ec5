import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from curvote.base.errors import UserError
from curvote.cli import run as running
from curvote.flows import environment
from curvote.flows.server.flow_runs import close_dead_flow_runs, tag_flow_run
from curvote.flows.server.launch import is_healthy
from curvote.flows.server.private import (
    PrefectServer,
    is_own_server,
    read_serving,
)
from curvote.flows.serving.service import serve_schedules
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from tests import plain, served
from tests.prepared import put_databases
from tests.processes import processes_of, until

LONG_ENOUGH = 90.0
linux = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.pop("PREFECT_API_URL", None)
    yield
    os.environ.clear()
    os.environ.update(before)


def _posted(url: str) -> int:
    """Return how the server answers somebody on this machine who knows no secret."""
    order = Request(f"{url}/flow_runs/filter", b"{}", method="POST")
    try:
        with urlopen(order, timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def dead() -> str:
    """Return the tag of a process that has ended."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    tag = environment.process_tag(gone.pid)
    gone.wait()
    return tag


def _rows(root: Path, query: str) -> list[tuple[str, int]]:
    database = sqlite3.connect(root / "data" / "state" / "prefect" / "prefect.db")
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


@linux
def test_a_private_server_records_a_run_and_ends(
    tmp_path: Path, databases: Path
) -> None:
    """Task runs are all there after the end; stale runs are swept, living ones not.

    That a server without a database makes one, `databases` itself shows.
    """
    put_databases(databases, Project(tmp_path))
    with PrefectServer(tmp_path) as server:
        from prefect import flow, task
        from prefect.client.orchestration import get_client
        from prefect.states import Running

        server.wait()
        assert is_healthy(server.url, 5.0)
        assert os.environ["PREFECT_API_URL"] == server.url
        assert read_serving(server.home) is None
        assert _posted(server.url) == 401
        assert not server.secret_file.exists()

        @task
        def one(i: int) -> int:
            return i

        @flow
        def several() -> int:
            tag_flow_run()
            assert close_dead_flow_runs() == 0
            return sum(one.submit(i).result() for i in range(30))

        assert several() == sum(range(30))
        with get_client(sync_client=True) as client:
            for owner in (dead(), environment.process_tag()):
                client.create_flow_run(several, tags=[owner], state=Running())
        assert close_dead_flow_runs() == 1
    assert "PREFECT_API_URL" not in os.environ
    assert not processes_of(tmp_path)
    states = "select state_name, count(*) from {} group by 1 order by 1"
    assert _rows(tmp_path, states.format("task_run")) == [("Completed", 30)]
    assert _rows(tmp_path, states.format("flow_run")) == [
        ("Completed", 1),
        ("Crashed", 1),
        ("Running", 1),
    ]


@linux
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.faults),
        pytest.param(signal.SIGINT, marks=pytest.mark.faults),
    ],
)
def test_schedules_fire_and_no_process_outlives_serve(
    tmp_path: Path, databases: Path, number: signal.Signals
) -> None:
    """Whatever ends ``serve`` ends its server and the run under way within 10 s.

    Processes are what it is about, and that they end.
    """
    every = plain.TINY | {"schedule": {"interval": 2}}
    put_databases(databases, plain.write(tmp_path, long=every))
    serving, log = served.start(tmp_path), tmp_path / "serve.log"
    try:
        assert until((tmp_path / "fired").exists, LONG_ENOUGH), log.read_text()
        assert read_serving(tmp_path / "data" / "state" / "prefect")
        assert len(processes_of(tmp_path)) >= 2
        serving.send_signal(number)
        serving.wait(10)
        assert until(lambda: not processes_of(tmp_path), 10.0)
    finally:
        serving.kill()
        serving.wait()
        for pid in processes_of(tmp_path):
            os.kill(pid, signal.SIGKILL)
    assert read_serving(tmp_path / "data" / "state" / "prefect") is None
    assert "Traceback" not in log.read_text()


def test_a_server_that_cannot_start_is_a_user_error_with_its_cause(
    tmp_path: Path,
) -> None:
    """One line says why and what to do, and nothing is left behind."""
    server = PrefectServer(tmp_path)
    server.home.mkdir()
    (server.home / "prefect.db").write_text("this is no database " * 100)
    with (
        pytest.raises(UserError, match=r"no sound database any more.*doctor --fix"),
        server,
    ):
        server.wait()
    assert not server.is_ours
    assert "PREFECT_API_URL" not in os.environ


def test_an_unreachable_address_of_the_user_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that was set is not silently replaced."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with pytest.raises(UserError, match="unset PREFECT_API_URL"):
        PrefectServer(tmp_path).start().wait()


def test_serve_without_a_schedule_says_how_to_add_one(tmp_path: Path) -> None:
    """The error holds a line that works."""
    with pytest.raises(UserError, match="interval: 3600"):
        serve_schedules(Project(tmp_path), {}, port=0)


def test_what_the_user_set_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another project replaces our own values, never the user's."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking.example")
    for name in ("one", "two"):
        state = environment.prepare_environment(tmp_path / name)
        assert os.environ["PREFECT_HOME"] == str(state / "prefect")
        assert os.environ["MLFLOW_TRACKING_URI"] == "http://tracking.example"


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """The message says what and where."""
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(UserError, match=r"data/state cannot be written"):
        environment.prepare_environment(tmp_path)


@linux
def test_a_process_is_told_from_a_later_one_of_the_same_number() -> None:
    """A tag names a process for good."""
    own = environment.process_tag()
    assert environment.is_alive(own)
    assert not environment.is_alive(f"{own}1")
    for forged in ("pid:", "pid:none@1", f"pid:{10**30}"):
        assert not environment.is_alive(forged)
    assert not environment.is_alive(dead())


@linux
def test_a_server_that_is_kept_is_found_by_the_next_and_ends_by_itself(
    tmp_path: Path, databases: Path
) -> None:
    """It is one real server: who else is on this machine is refused, and none stays."""
    project = put_databases(databases, Project(tmp_path))
    secret_file = project.state / "prefect" / environment.WARM_SERVER
    with PrefectServer(tmp_path, warm_seconds=2) as first:
        assert first.await_child() is not None
        assert until(secret_file.exists, LONG_ENOUGH)
    for _ in range(2):  # the lock of the one before has gone with it
        with PrefectServer(tmp_path, warm_seconds=2) as later:
            assert (later.url, later.await_child()) == (first.url, None)
            assert is_own_server(project.state, first.url)
            assert _posted(first.url) == 401
            assert secret_file.stat().st_mode & 0o077 == 0
            time.sleep(3)  # longer than it waits: whoever uses it keeps it
            assert is_healthy(first.url, 5.0)
    assert until(lambda: not processes_of(tmp_path), LONG_ENOUGH)
    assert not secret_file.exists()
    assert read_serving(first.home, environment.WARM_SERVER) is None


@pytest.mark.usefixtures("own_variables")
def test_a_study_that_reuses_everything_starts_no_server(
    tmp_path: Path, databases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on record, in MLflow and on its page like any other; a change has one."""
    project = put_databases(databases, plain.write(tmp_path, tiny=plain.FEW))
    plain.run(project)
    monkeypatch.setattr(running, "PrefectServer", _no_server)
    running.run_and_print(project, {"pipeline": "tiny"})
    *_, record = records.load_records(project, "tiny")
    assert {step["action"] for step in record.steps} == {"reuse"}
    assert record.status == "completed"
    assert record.mlflow_run
    assert (project.reports / "tiny" / "report.html").is_file()
    for options in ({"seed": 8}, {"force": ["train"]}, {"only": ["trian"]}):
        with pytest.raises((AssertionError, UserError)):
            running.run_and_print(project, {"pipeline": "tiny", **options})


def _no_server(*_: object, **__: object) -> None:
    raise AssertionError
