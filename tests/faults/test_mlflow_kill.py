"""``kill -9`` and power cuts while MLflow's database is made: it stays usable."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from curvote.flows.machine import MLFLOW
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from tests import plain

KILLS, SECONDS, CUTS = 30, 10.0, 10
pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("own_variables")]


def command(project: Project, *words: str) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "curvote.cli", *words, "--project", str(project.root)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def logs(project: Project, *more: str) -> bool:
    """Say whether the next run logs, if need be after `doctor --fix`."""
    run = ("run", "tiny", *more)
    for words in (run, ("doctor", "--fix"), run):
        command(project, *words).wait(170)
        done = [r for r in records.load_records(project) if r.status == "completed"]
        if words[0] == "run" and done and all(r.mlflow_run for r in done):
            return True
    return False


def test_a_first_run_that_is_killed_leaves_mlflow_usable(tmp_path: Path) -> None:
    """At 30 moments of its first ten seconds."""
    for k in range(KILLS):
        project = plain.write(tmp_path / f"{k}", tiny=plain.FEW)
        running = command(project, "run", "tiny")
        time.sleep((k + 1) * SECONDS / KILLS)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        assert logs(project), f"killed after {(k + 1) * SECONDS / KILLS:.2f} s"


def test_a_power_cut_in_a_transaction_leaves_mlflow_usable(tmp_path: Path) -> None:
    """The journal of a writer that is gone, at ten lengths of it."""
    project = plain.write(tmp_path / "p", tiny=plain.FEW)
    assert logs(project)
    path = MLFLOW.path(project)
    assert path is not None
    whole = path.read_bytes()
    for k in range(CUTS):
        path.write_bytes(whole)
        live = tmp_path / "live.db"
        shutil.copy(path, live)
        with closing(sqlite3.connect(live, isolation_level=None)) as db:
            db.execute("PRAGMA cache_size = 1")
            db.execute("BEGIN IMMEDIATE")
            for i in range(30 * (k + 1)):
                row = (f"key{i}", "x" * 400)
                db.execute("INSERT INTO experiment_tags VALUES (?, ?, 0)", row)
            shutil.copy(live, path)
            shutil.copy(f"{live}-journal", f"{path}-journal")
            db.execute("ROLLBACK")
        assert Path(f"{path}-journal").stat().st_size > 0
        assert logs(project, f"--seed={k}"), f"cut {k}"
