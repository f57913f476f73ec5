"""Folders that are made once for all workers of a session, and copied by tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from curvote.flows.environment import file_locked
from curvote.pipeline.config.project import Project

_DATABASES = """
import asyncio, sys
from pathlib import Path
from curvote.flows.environment import prepare_environment
from curvote.flows.tracking.store import migrate_database
state = prepare_environment(Path(sys.argv[1]))
(state / "prefect").mkdir()
from prefect.server.database import provide_database_interface
asyncio.run(provide_database_interface().create_db())
migrate_database(state / "mlflow.db")
"""


def folder(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Path:
    """Return a folder that ``make`` filled, in whichever worker came first."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    place, aside = base / f"prepared-{name}", base / f"making-{name}"
    with file_locked(base / f"{name}.lock"):
        if not place.exists():
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            make(aside)
            aside.rename(place)
    return place


def make_databases(root: Path) -> None:
    """Make Prefect's and MLflow's databases of a project, as its first run would."""
    ours = ("PREFECT_", "MLFLOW_", "CURVOTE_")
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _DATABASES, str(root)],
        cwd=Path(__file__).parents[1],
        env={n: v for n, v in os.environ.items() if not n.startswith(ours)},
        check=True,
        capture_output=True,
        timeout=300,
    )


def put_databases(made: Path, project: Project) -> Project:
    """Copy such databases into a project that has none."""
    shutil.copytree(made / "data", project.root / "data", dirs_exist_ok=True)
    return project
