"""A run that is asked to end, or whose server ends: words, and the same command."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from curvote.flows.server.private import PrefectServer
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from tests import plain
from tests.faults.test_kill import MIDDLE
from tests.flows.test_notices import KEEP
from tests.processes import processes_of, until

pytestmark = pytest.mark.faults


def start(project: Project, **variables: str) -> subprocess.Popen[str]:
    """Start a run."""
    words = ["run", "tiny", "--workers", "2", "--project", str(project.root)]
    return subprocess.Popen(
        [sys.executable, "-m", "curvote.cli", *words],
        env={**os.environ, **variables},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def begun(project: Project) -> bool:
    """Say whether a run is on record and has stored something."""
    return bool(records.load_records(project)) and bool(
        list(project.clients.glob("*/*"))
    )


def completes(project: Project) -> None:
    """Give the same command again."""
    again = start(project)
    _, told = again.communicate(timeout=170)
    assert again.returncode == 0, told
    assert records.completed_run(project, "tiny").status == "completed"


def test_a_run_that_is_asked_to_end_leaves_no_process(tmp_path: Path) -> None:
    """SIGTERM: no process is left, no traceback, and the same command goes on."""
    project = plain.write(tmp_path, tiny=MIDDLE)
    running = start(project)
    assert until(lambda: begun(project), 100)
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=60)
    assert running.returncode
    assert "Traceback" not in told
    assert until(lambda: not processes_of(project.root), 60)
    completes(project)
    assert {r.status for r in records.load_records(project)} <= {
        *("completed", "killed", "interrupted", "failed")
    }


def test_a_server_that_ends_half_way_is_said(tmp_path: Path) -> None:
    """One that the user named: at most five lines, a notice, and then all goes on."""
    project = plain.write(tmp_path / "project", tiny=MIDDLE)
    tell = [sys.executable, "-c", KEEP, str(tmp_path / "told.json")]
    with project.pipelines_file.open("a") as file:
        file.write(f"runtime: {json.dumps({'notify': {'command': tell}})}\n")
    other = tmp_path / "other"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CURVOTE_STATE", "PREFECT_HOME"):
            patch.delenv(name, raising=False)
        with PrefectServer(other) as server:
            server.wait()
            secret = os.environ.get("PREFECT_API_AUTH_STRING", "")
            where = {"PREFECT_API_URL": server.url, "PREFECT_API_AUTH_STRING": secret}
            running = start(project, **where)
            assert until(lambda: begun(project), 100)
        _, told = running.communicate(timeout=170)
    said = [line for line in told.splitlines() if not line.startswith("[")]
    assert running.returncode == 2
    assert "Traceback" not in told
    assert len(said) <= 5
    assert any("does not answer" in line for line in said)
    assert json.loads((tmp_path / "told.json").read_text())["event"] == "failed"
    completes(project)
