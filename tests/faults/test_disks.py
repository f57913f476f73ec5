"""Disks that are full, read-only or several: one message, and with room it goes on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import Artifact, all_folders
from tests import plain
from tests.small_disks import MARKS, Disk, again, disk

__all__ = ["disk"]

# Its first table alone is larger than any of the small disks.
LARGE = plain.TINY | {
    "source": {"name": "simulated", "points": 200},
    "clients": {"train": 200, "vote": 400, "test": 200},
    "replicates": 20,
    "epsilon": [4],
    "learners": ["centroid"],
}
pytestmark = MARKS


def run(project: Project, **variables: str) -> tuple[int, list[str]]:
    """Run the pipeline; return the exit code and what was said beside progress."""
    words = ["run", "tiny", "--workers", "1", "--project", str(project.root)]
    done = subprocess.run(
        [sys.executable, "-m", "curvote.cli", *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    lines = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    return done.returncode, [line for line in lines if not re.match(r"\[\d+/", line)]


def sound(project: Project) -> bool:
    """Say whether every artifact under a final name is what was committed."""
    there = (f for f in all_folders(project) if not f.name.startswith("."))
    return all(Artifact(f).problem(content=True) is None for f in there)


@pytest.mark.parametrize("size", ["4m", "6m", "9m"])
def test_one_full_disk_is_said_and_room_lets_it_go_on(
    tmp_path: Path, disk: Disk, size: str
) -> None:
    """Whoever ran out first: Prefect's server, its database, a block, MLflow."""
    root = disk(tmp_path / "disk", size)
    project = plain.write(root, tiny=LARGE)
    code, said = run(project)
    assert code == 2
    assert len(said) <= 5, said
    assert any("no space left" in line for line in said)
    assert sound(project)
    again(root, "size=400m")
    assert run(project)[0] == 0
    assert records.completed_run(project, "tiny").status == "completed"


@pytest.mark.parametrize("link", [False, True])
def test_artifacts_on_a_disk_of_their_own(
    tmp_path: Path, disk: Disk, link: bool
) -> None:
    """Mounted, or linked to; full, they end a run in words, and room lets it go on."""
    project = plain.write(tmp_path / "project", tiny=LARGE)
    place = tmp_path / "elsewhere" if link else project.clients
    folder = disk(place, "2m")
    if link:
        project.clients.parent.mkdir()
        project.clients.symlink_to(folder)
        disk(project.artifacts, "50m")
    code, said = run(project)
    assert (code, len(said) <= 5) == (2, True)
    assert any("no space left while writing" in line for line in said)
    again(folder, "size=400m")
    assert run(project)[0] == 0
    assert sound(project)


@pytest.mark.parametrize("part", ["artifacts", "state"])
def test_a_read_only_disk_is_said_and_nothing_is_lost(
    tmp_path: Path, disk: Disk, part: str
) -> None:
    """Once it can be written, the same command goes on."""
    project = plain.write(tmp_path / "project", tiny=plain.TINY | {"replicates": 2})
    folder = disk(project.root / "data" / part, "50m")
    again(folder, "ro")
    code, said = run(project)
    assert (code, len(said) <= 5) == (2, True)
    assert any("no permission to write" in s or "cannot be written" in s for s in said)
    again(folder, "rw")
    assert run(project)[0] == 0


def test_a_full_disk_below_mlflow_is_a_warning(tmp_path: Path, disk: Disk) -> None:
    """The results stand; with room, the next run logs both."""
    project = plain.write(tmp_path / "project", tiny=plain.TINY | {"replicates": 2})
    folder = disk(tmp_path / "tracking", "400k")
    where = {"MLFLOW_TRACKING_URI": f"sqlite:///{folder / 'mlflow.db'}"}
    code, said = run(project, **where)
    assert code == 0
    assert len(said) <= 5, said
    assert any("warning: MLflow" in s and "space" in s for s in said)
    again(folder, "size=50m")
    assert run(project, **where)[0] == 0
    assert all(record.mlflow_run for record in records.load_records(project))


def test_a_full_disk_below_prefect_is_said(tmp_path: Path, disk: Disk) -> None:
    """At its start; with room the same command completes."""
    project = plain.write(tmp_path / "project", tiny=plain.TINY | {"replicates": 2})
    folder = disk(tmp_path / "orders", "400k")
    name = "PREFECT_API_DATABASE_CONNECTION_URL"
    where = {name: f"sqlite+aiosqlite:///{folder / 'prefect.db'}"}
    code, said = run(project, **where)
    assert (code, len(said) <= 5) == (2, True)
    assert any("no space left" in line for line in said)
    again(folder, "size=50m")
    assert run(project, **where)[0] == 0
