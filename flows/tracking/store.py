"""MLflow's store of a project: where it is, that it can be written, what is stale."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvote.durable import journals
from curvote.errors import UserError
from curvote.flows.environment import is_alive, locked, prepare
from curvote.flows.examining.databases import MLFLOW, unanswered
from curvote.run.config.file import PipelinesFile
from curvote.run.project import Project

if TYPE_CHECKING:
    from mlflow import MlflowClient


def connect(project: Project) -> MlflowClient:
    """Return a client of the store that the environment names; makes a new database."""
    prepare(project.root)
    uri = os.environ["MLFLOW_TRACKING_URI"]
    _check(project, uri)
    make(project)
    import mlflow

    mlflow.set_tracking_uri(uri)
    return mlflow.MlflowClient(uri)


def _check(project: Project, uri: str) -> None:
    """Fail at once where MLflow would try again for minutes."""
    problem = MLFLOW.problem(project)
    if problem:
        raise UserError("; ".join(MLFLOW.words(project, problem)) + ".")
    if lost := unanswered(uri):
        raise UserError(f"MLflow's {lost}.")
    if uri.startswith(("postgresql:", "postgres:")) and not find_spec("psycopg2"):
        raise UserError(
            "MLflow takes psycopg2 for an address in MLFLOW_TRACKING_URI that begins"
            " with postgresql://; with psycopg 3 (curvote[postgres]) it begins with"
            " postgresql+psycopg://."
        )
    if not uri.startswith("sqlite:///"):
        return
    path = uri.removeprefix("sqlite:///")
    with contextlib.closing(
        sqlite3.connect(path, timeout=10, uri=path.startswith("file:"))
    ) as database:
        database.execute("BEGIN IMMEDIATE")
        database.rollback()


def make(project: Project) -> None:
    """Make MLflow's database where there is none yet, whole or not at all.

    Its migrations are no one transaction, and MLflow never opens a database again that
    was left between two of them: so it is made beside and renamed.
    """
    path = MLFLOW.path(project)
    if path is None or _is_begun(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.name}.lock")):
        if _is_begun(path):
            return
        aside = path.with_name(f".{path.name}.making")
        for left in (aside, *journals(aside)):
            left.unlink(missing_ok=True)
        migrate(aside)
        aside.replace(path)


def migrate(path: Path) -> None:
    """Make the tables of MLflow's database, or bring them to the newest revision."""
    from sqlalchemy import URL, create_engine

    utils: Any = import_module("mlflow.store.db.utils")  # untyped

    engine = create_engine(URL.create("sqlite", database=str(path)))
    try:
        if _is_begun(path):
            utils._upgrade_db(engine)  # noqa: SLF001 - as `mlflow db upgrade` calls
        else:
            utils._initialize_tables(engine)  # noqa: SLF001 - as its store does
    finally:
        engine.dispose()


def _is_begun(path: Path) -> bool:
    """Say whether a database holds anything: an empty file is none."""
    if not path.is_file():
        return False
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as database:
        count = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    return bool(count)


def experiment_id(client: MlflowClient, project: Project, name: str) -> str:
    """Return the id of the experiment, whose files lie where the project says.

    MLflow fixes an absolute path when it makes an experiment: after the project has
    moved, the old one is renamed and a new one takes its place. In a database that
    others may share, theirs keep their names.
    """
    place = files_of(project)
    found = experiment_of(client, project, name)
    if found and found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    if found and place in (None, found.artifact_location):
        return str(found.experiment_id)
    if found:
        client.rename_experiment(
            found.experiment_id, f"{name} (before moving, {found.experiment_id})"
        )
    return str(client.create_experiment(_free(client, project, name), place))


def experiment_of(client: MlflowClient, project: Project, name: str) -> Any:
    """Return the experiment of a pipeline of this project, or None."""
    place = files_of(project)
    every = [client.get_experiment_by_name(each) for each in _names(project, name)]
    there = [one for one in every if one]
    here = [one for one in there if place in (None, one.artifact_location)]
    # A file is this project's own: what lies elsewhere was there before it moved.
    return next(iter(here or (there if _is_file() else [])), None)


def files_of(project: Project) -> str | None:
    """Return where MLflow keeps the files of runs; None: a server of it decides."""
    stated = _stated(project)
    if stated is not None:
        return stated if "://" in stated else (project.root / stated).resolve().as_uri()
    if os.environ["MLFLOW_TRACKING_URI"].startswith(("http:", "https:", "databricks")):
        return None
    return (project.state.resolve() / "mlartifacts").as_uri()


def _stated(project: Project) -> str | None:
    if not project.pipelines_file.is_file():
        return None
    return PipelinesFile(project).runtime().mlflow.artifacts


def _is_file() -> bool:
    return os.environ["MLFLOW_TRACKING_URI"].startswith("sqlite:")


def _names(project: Project, name: str) -> tuple[str, ...]:
    if _is_file():
        return (name,)
    root = project.root.resolve()
    return name, f"{name} ({root.name})", f"{name} ({root})"


def _free(client: MlflowClient, project: Project, name: str) -> str:
    """Return the first name that nobody has; the last one is this project's alone."""
    *names, last = _names(project, name)
    free = (each for each in names if client.get_experiment_by_name(each) is None)
    return next(free, last)


def sweep(client: MlflowClient) -> None:
    """Mark the runs that a killed process left open."""
    experiments = [each.experiment_id for each in client.search_experiments()]
    for run in client.search_runs(experiments, "attributes.status = 'RUNNING'"):
        owner = run.data.tags.get("curvote.pid")
        if owner and not is_alive(owner):
            client.set_terminated(run.info.run_id, "KILLED")


def delete(client: MlflowClient, experiment: str, parent: str) -> None:
    """Delete a parent run with its children."""
    children = client.search_runs(
        [experiment], f"tags.`mlflow.parentRunId` = '{parent}'"
    )
    for run_id in (*(child.info.run_id for child in children), parent):
        client.delete_run(run_id)
