"""Prefect and MLflow on a PostgreSQL, and what runs leave in a project's folder."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from tests import plain, postgres

pytestmark = pytest.mark.faults
ROOT = Path(__file__).parents[2]
WITHOUT = postgres.missing()


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """Return a server of the machine's own packages; without one, say why not."""
    if WITHOUT:
        pytest.skip(WITHOUT)
    with postgres.server() as found:
        found.run(
            *("psql", "-h", "127.0.0.1", "-p", str(found.port), "-U", postgres.USER),
            *("-c", "CREATE DATABASE prefect"),
        )
        yield found


def curvote(
    project: Project, *words: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in the project's folder, as a user would."""
    clean = {n: v for n, v in os.environ.items() if "MLFLOW" not in n}
    clean = {n: v for n, v in clean.items() if not n.startswith(("PREFECT", "CURVOTE"))}
    return subprocess.run(
        [sys.executable, "-m", "curvote.cli", *words],
        cwd=project.root,
        env={**clean, "PYTHONPATH": str(ROOT), **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


def variables(server: postgres.Server) -> dict[str, str]:
    """Return the two variables that name the server."""
    address = urlsplit(server.url)
    return {
        "MLFLOW_TRACKING_URI": address._replace(scheme="postgresql+psycopg").geturl(),
        "PREFECT_API_DATABASE_CONNECTION_URL": address._replace(
            scheme="postgresql+asyncpg", path="/prefect"
        ).geturl(),
    }


def test_a_run_keeps_to_its_folder_and_to_the_users_databases(
    server: postgres.Server, tmp_path: Path
) -> None:
    """Both are used as they are; MLflow's files lie under data, nothing beside it."""
    project = plain.write(tmp_path, tiny=plain.FEW)
    done = curvote(project, "run", "tiny", "--workers", "1", **variables(server))
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"data", "pipelines.yaml"}
    assert not (project.state / "mlflow.db").exists()
    assert not (project.state / "prefect" / "prefect.db").exists()
    assert list((project.state / "mlartifacts").glob("*/artifacts/report.html"))
    assert records.completed_run(project, "tiny").mlflow_run
    flows = _query(server, "prefect", "SELECT count(*) FROM flow_run")
    runs = _query(server, "postgres", "SELECT count(*) FROM runs")
    assert (flows, runs) == (1, 2)


def test_two_projects_share_a_database(server: postgres.Server, tmp_path: Path) -> None:
    """Pipelines of one name: each keeps its own experiment, and its own files."""
    for name in ("one", "two", "one"):
        project = plain.write(tmp_path / name, shared=plain.FEW)
        done = curvote(project, "run", "shared", **variables(server))
        assert done.returncode == 0, done.stderr
        assert list((project.state / "mlartifacts").glob("*/artifacts/report.html"))
    found = "SELECT count(*) FROM experiments WHERE name LIKE 'shared%'"
    assert _query(server, "postgres", found) == 2


def test_without_its_database_mlflow_costs_a_warning(
    server: postgres.Server, tmp_path: Path
) -> None:
    """The results stand, at once; the next run logs both."""
    project = plain.write(tmp_path, tiny=plain.FEW)
    away = {"MLFLOW_TRACKING_URI": "postgresql://nobody@127.0.0.1:1/none"}
    done = curvote(project, "run", "tiny", **away)
    assert done.returncode == 0, done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if "warning" in line]
    assert "does not answer" in warning
    assert "the results stand and the next run tries again" in warning
    assert curvote(project, "run", "tiny", **variables(server)).returncode == 0
    assert all(record.mlflow_run for record in records.load_records(project))


def test_without_its_database_prefect_says_so(tmp_path: Path) -> None:
    """At most five lines, no traceback; with it, the same command goes on."""
    project = plain.write(tmp_path, tiny=plain.FEW)
    name = "PREFECT_API_DATABASE_CONNECTION_URL"
    gone = {name: "postgresql+asyncpg://nobody@127.0.0.1:1/none"}
    done = curvote(project, "run", "tiny", **gone)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) <= 5
    assert "does not answer" in done.stderr
    assert "Traceback" not in done.stderr
    assert curvote(project, "run", "tiny").returncode == 0


def _query(server: postgres.Server, database: str, words: str) -> Any:
    import psycopg

    address = urlsplit(server.url)._replace(path=f"/{database}").geturl()
    with psycopg.connect(address) as db:
        found = db.execute(words).fetchone()
        return found[0] if found else None
