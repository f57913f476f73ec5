"""A run and the server that is its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.flows.server.private import PrefectServer
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from tests import plain
from tests.processes import processes_of, until

LONG_ENOUGH = 150.0


def server_of(root: Path) -> int | None:
    """Return the process of the server that works for a project."""
    for pid in processes_of(root):
        line = Path(f"/proc/{pid}/cmdline")
        if line.exists() and "curvote.flows.server.process" in line.read_text():
            return pid
    return None


def kill_server(project: Project, stored: int) -> None:
    """Kill the server once so many artifacts are begun; wait until there is another."""
    assert until(lambda: len([*project.clients.glob("*/*")]) >= stored, LONG_ENOUGH)
    pid = server_of(project.root)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: server_of(project.root) not in {None, pid}, 60)


@pytest.mark.faults
def test_a_run_goes_on_when_its_server_dies(tmp_path: Path) -> None:
    """It waits until the server is back, twice; one line each time, no traceback."""
    project = plain.write(tmp_path, tiny=plain.TINY | {"replicates": 200})
    words = ["run", "tiny", "--workers", "1", "--block", "5"]
    running = subprocess.Popen(
        [sys.executable, "-m", "curvote.cli", *words, "--project", str(project.root)],
        env={k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    for number in range(1, 3):
        kill_server(project, number)
    _, told = running.communicate(timeout=LONG_ENOUGH)
    assert running.returncode == 0, told
    said = "Prefect's server was ended by SIGKILL; it is started again"
    assert told.count(said) == 2
    assert "Traceback" not in told
    assert records.completed_run(project, "tiny").status == "completed"
    assert not processes_of(project.root)


def test_a_database_elsewhere_that_does_not_answer_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is named, its address and password are not."""
    name = "PREFECT_API_DATABASE_CONNECTION_URL"
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv(name, "postgresql+asyncpg://me:secret@127.0.0.1:9/none")
    said = f"{name} names does not answer"
    with (
        pytest.raises(UserError, match=said) as failure,
        PrefectServer(project.root) as server,
    ):
        server.await_child()
    assert "secret" not in str(failure.value)
    assert "\n" not in str(failure.value)
    assert not processes_of(project.root)
