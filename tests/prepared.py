"""Folders that are made once for all workers of a session, and copied by tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest

from curvote.flows.environment import file_locked
from curvote.pipeline.config.project import Project

_DATABASES = """
import sys
from pathlib import Path
from curvote.flows.environment import prepare_environment
from curvote.flows.server.private import PrefectServer
from curvote.flows.tracking.store import migrate_database
root = Path(sys.argv[1])
with PrefectServer(root) as server:
    migrate_database(prepare_environment(root) / "mlflow.db")
    server.await_child()
server.launch.log.unlink()
"""
ROOT = Path(__file__).parents[1]


def databases_name() -> str:
    """Return a name of such databases, by all that what is in them depends on."""
    named = [f"{name}-{version(name)}" for name in ("mlflow", "prefect")]
    makers = [*sorted((ROOT / "flows" / "server").glob("*.py")), Path(__file__)]
    makers.append(ROOT / "flows" / "tracking" / "store.py")
    digest = sha256(b"".join(path.read_bytes() for path in makers)).hexdigest()
    return "-".join(["databases", *named, digest[:16]])


def folder(
    factory: pytest.TempPathFactory,
    name: str,
    make: Callable[[Path], object],
    base: Path | None = None,
) -> Path:
    """Return a folder that ``make`` filled, in whichever worker came first.

    It lies in ``base``; by default it is made once a session.
    """
    if base is None:
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
    """Make Prefect's and MLflow's databases of a project, as its first run would.

    Prefect's is made by a server that finds none.
    """
    ours = ("PREFECT_", "MLFLOW_", "CURVOTE_")
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _DATABASES, str(root)],
        cwd=ROOT,
        env={n: v for n, v in os.environ.items() if not n.startswith(ours)},
        check=True,
        capture_output=True,
        timeout=300,
    )


def put_databases(made: Path, project: Project) -> Project:
    """Copy such databases into a project that has none."""
    shutil.copytree(made / "data", project.root / "data", dirs_exist_ok=True)
    return project
