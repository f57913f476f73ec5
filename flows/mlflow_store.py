"""MLflow's store of a project: where it is, that it can be written, what is stale."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import TYPE_CHECKING

from curvote.errors import UserError
from curvote.run.project import Project
from flows.environment import is_alive, prepare
from flows.examining.databases import MLFLOW, unanswered

if TYPE_CHECKING:
    from mlflow import MlflowClient


def connect(project: Project) -> MlflowClient:
    """Return a client of the store that the environment names; makes a new database."""
    prepare(project.root)
    uri = os.environ["MLFLOW_TRACKING_URI"]
    _check(project, uri)
    import mlflow

    mlflow.set_tracking_uri(uri)
    return mlflow.MlflowClient(uri)


def _check(project: Project, uri: str) -> None:
    """Fail at once where MLflow would try again for minutes."""
    problem = MLFLOW.problem(project)
    if problem:
        raise UserError("; ".join(MLFLOW.words(project, problem)) + ".")
    lost = None if uri.startswith(("sqlite:", "file:", "/")) else unanswered(uri)
    if lost:
        raise UserError(f"MLflow's {lost}.")
    if not uri.startswith("sqlite:///"):
        return
    path = uri.removeprefix("sqlite:///")
    with contextlib.closing(
        sqlite3.connect(path, timeout=10, uri=path.startswith("file:"))
    ) as database:
        database.execute("BEGIN IMMEDIATE")
        database.rollback()


def experiment_id(client: MlflowClient, project: Project, name: str) -> str:
    """Return the id of the experiment, whose artifacts lie in this project.

    MLflow fixes an absolute path when it makes an experiment: after the project has
    moved, the old one is renamed and a new one takes its place.
    """
    own = os.environ["MLFLOW_TRACKING_URI"].startswith("sqlite:")
    location = (project.state.resolve() / "mlartifacts").as_uri() if own else None
    found = client.get_experiment_by_name(name)
    if found and found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    if found and location in (None, found.artifact_location):
        return str(found.experiment_id)
    if found:
        client.rename_experiment(
            found.experiment_id, f"{name} (before moving, {found.experiment_id})"
        )
    return str(client.create_experiment(name, location))


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
