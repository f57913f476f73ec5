"""MLflow's store of a project: location, creation, and deletion of runs."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from curvote.base.durable import journal_paths
from curvote.base.errors import UserError
from curvote.flows.environment import file_locked, is_alive, prepare_environment
from curvote.flows.machine import MLFLOW, describe_silence
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


def connect(project: Project) -> MlflowClient:
    """Return a client of the store; a missing database is made."""
    prepare_environment(project.root)
    uri = os.environ["MLFLOW_TRACKING_URI"]
    problem = MLFLOW.problem(project)
    if problem:
        raise UserError("; ".join(MLFLOW.problem_and_remedy(project, problem)) + ".")
    # Else MLflow would retry for minutes.
    if lost := describe_silence(uri):
        raise UserError(f"MLflow's {lost}.")
    if uri.startswith(("postgresql:", "postgres:")) and not find_spec("psycopg2"):
        raise UserError(
            "MLflow takes psycopg2 for an address in MLFLOW_TRACKING_URI that begins"
            " with postgresql://; with psycopg 3 (curvote[postgres]) it begins with"
            " postgresql+psycopg://."
        )
    if uri.startswith("sqlite:///"):
        path = uri.removeprefix("sqlite:///")
        opened = sqlite3.connect(path, timeout=10, uri=path.startswith("file:"))
        with contextlib.closing(opened) as database:
            database.execute("BEGIN IMMEDIATE")
            database.rollback()
    make_new_database(project)
    import mlflow

    mlflow.set_tracking_uri(uri)
    return mlflow.MlflowClient(uri)


def make_new_database(project: Project) -> None:
    """Make MLflow's database, if it is missing, atomically.

    Its migrations are no one transaction, and MLflow never opens a database again that
    was left between two of them: so it is made beside and renamed.
    """
    path = MLFLOW.path(project)
    if path is None or _has_tables(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_locked(path.with_name(f".{path.name}.lock")):
        if _has_tables(path):
            return
        aside = path.with_name(f".{path.name}.making")
        for leftover in (aside, *journal_paths(aside)):
            leftover.unlink(missing_ok=True)
        migrate_database(aside)
        aside.replace(path)


def migrate_database(path: Path) -> None:
    """Create the tables of a database, or upgrade them."""
    from sqlalchemy import URL, create_engine

    utils: Any = import_module("mlflow.store.db.utils")  # untyped

    engine = create_engine(URL.create("sqlite", database=str(path)))
    try:
        if _has_tables(path):
            utils._upgrade_db(engine)  # noqa: SLF001 - as `mlflow db upgrade` calls
        else:
            utils._initialize_tables(engine)  # noqa: SLF001 - as its store does
    finally:
        engine.dispose()


def _has_tables(path: Path) -> bool:
    if not path.is_file():
        return False
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as database:
        (count,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return bool(count)


def find_or_make_experiment(client: MlflowClient, project: Project, name: str) -> str:
    """Return the id of the experiment whose files lie where the project says.

    MLflow fixes an absolute path when it makes an experiment: after the project has
    moved, the old one is renamed and a new one takes its place. In a database that
    others may share, theirs keep their names.
    """
    place = artifact_root(project)
    experiment = find_experiment(client, project, name)
    if experiment and experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)
    if experiment and place in (None, experiment.artifact_location):
        return str(experiment.experiment_id)
    if experiment:
        number = experiment.experiment_id
        client.rename_experiment(number, f"{name} (before moving, {number})")
    *names, last = _experiment_names(project, name)
    free = (
        candidate
        for candidate in names
        if client.get_experiment_by_name(candidate) is None
    )
    return str(client.create_experiment(next(free, last), place))


def find_experiment(client: MlflowClient, project: Project, name: str) -> Any:
    """Return the experiment of a pipeline of this project, or None."""
    place = artifact_root(project)
    names = _experiment_names(project, name)
    existing = [*filter(None, map(client.get_experiment_by_name, names))]
    local = [
        candidate
        for candidate in existing
        if place in (None, candidate.artifact_location)
    ]
    # A file is this project's own: what lies elsewhere was there before it moved.
    return next(iter(local or (existing if _is_local_file() else [])), None)


def artifact_root(project: Project) -> str | None:
    """Return where MLflow keeps files of runs; None: its server decides."""
    stated_root = None
    if project.pipelines_file.is_file():
        stated_root = PipelinesFile(project).runtime().mlflow.artifacts
    if stated_root is not None:
        is_address = "://" in stated_root
        return (
            stated_root
            if is_address
            else (project.root / stated_root).resolve().as_uri()
        )
    if os.environ["MLFLOW_TRACKING_URI"].startswith(("http:", "https:", "databricks")):
        return None
    return (project.state.resolve() / "mlartifacts").as_uri()


def _is_local_file() -> bool:
    return os.environ["MLFLOW_TRACKING_URI"].startswith("sqlite:")


def _experiment_names(project: Project, name: str) -> tuple[str, ...]:
    if _is_local_file():
        return (name,)
    root = project.root.resolve()
    return name, f"{name} ({root.name})", f"{name} ({root})"


def close_dead_runs(client: MlflowClient) -> None:
    """Mark the open runs of dead processes as killed."""
    experiments = [
        experiment.experiment_id for experiment in client.search_experiments()
    ]
    for run in client.search_runs(experiments, "attributes.status = 'RUNNING'"):
        owner = run.data.tags.get("curvote.pid")
        if owner and not is_alive(owner):
            client.set_terminated(run.info.run_id, "KILLED")


def delete_run(client: MlflowClient, experiment: str, parent: str) -> None:
    """Delete a parent run with its children."""
    wanted = f"tags.`mlflow.parentRunId` = '{parent}'"
    children = client.search_runs([experiment], wanted)
    for run_id in (*(child.info.run_id for child in children), parent):
        client.delete_run(run_id)


_MODEL_TAG = "model_uri"


@dataclass(frozen=True)
class DeletedRuns:
    """The deleted parent runs, and the folders that they leave."""

    runs: frozenset[str]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class _RunFamily:
    parent: Run
    children: list[Run]

    @property
    def run_ids(self) -> set[str]:
        return {run.info.run_id for run in (self.parent, *self.children)}

    @property
    def model_uris(self) -> set[str]:
        tags = (child.data.tags for child in self.children)
        return {
            child_tags[_MODEL_TAG] for child_tags in tags if _MODEL_TAG in child_tags
        }


def delete_runs(
    project: Project, parents: Collection[str], *, dry_run: bool
) -> DeletedRuns:
    """Delete parent runs with their children, and models of no other run.

    A run whose figures another one shows stays, and so does a model of a registered
    version that has an alias. The folders that are returned are for the caller to
    delete. Raises whatever MLflow raises.
    """
    client = connect(project)
    families = {run: _find_family(client, run) for run in parents}
    missing = {run for run, family in families.items() if family is None}
    existing = [family for family in families.values() if family]
    going = [f for f in existing if not _is_linked(client, f.parent, parents)]
    ids = {run for family in going for run in family.run_ids}
    models = {
        model
        for family in going
        for model in family.model_uris
        if not _is_model_used(client, model, family, ids)
    }
    places = [run.info.artifact_uri for f in going for run in (f.parent, *f.children)]
    places += [place for m in sorted(models) if (place := _model_location(client, m))]
    if not dry_run:
        for family in going:
            wanted = f"run_id = '{family.parent.info.run_id}'"
            for version in client.search_model_versions(wanted):
                if version.source in models or not version.aliases:
                    client.delete_model_version(version.name, version.version)
        _delete_for_good(client, ids, models)
    deleted = missing | {family.parent.info.run_id for family in going}
    return DeletedRuns(frozenset(deleted), tuple(_own_folders(places, {*ids, *models})))


def _find_family(client: MlflowClient, run: str) -> _RunFamily | None:
    from mlflow.exceptions import MlflowException

    try:
        parent = client.get_run(run)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise
    wanted = f"tags.`mlflow.parentRunId` = '{run}'"
    children = client.search_runs([parent.info.experiment_id], wanted)
    return _RunFamily(parent, list(children))


def _is_linked(client: MlflowClient, run: Run, going: Collection[str]) -> bool:
    """Return whether a remaining run shows this run's report."""
    wanted = f"tags.figures_run = '{run.info.run_id}'"
    linking = client.search_runs([run.info.experiment_id], wanted)
    return any(other.info.run_id not in going for other in linking)


def _is_model_used(
    client: MlflowClient, uri: str, family: _RunFamily, going: set[str]
) -> bool:
    """Return whether a remaining run or an aliased version uses a model."""
    wanted = f"tags.{_MODEL_TAG} = '{uri}'"
    runs = client.search_runs([family.parent.info.experiment_id], wanted)
    if any(run.info.run_id not in going for run in runs):
        return True
    name = family.parent.info.run_id
    versions = client.search_model_versions(f"run_id = '{name}'")
    return any(v.source == uri and v.aliases for v in versions)


def _model_location(client: MlflowClient, uri: str) -> str | None:
    from mlflow.exceptions import MlflowException

    try:
        model = client.get_logged_model(uri.removeprefix("models:/"))
        return str(model.artifact_location)
    except MlflowException:
        return None


def _delete_for_good(client: MlflowClient, runs: set[str], models: set[str]) -> None:
    # Only the store itself deletes for good; a server keeps what it is told to delete.
    store = client._tracking_client.store  # noqa: SLF001
    for run in sorted(runs):
        client.delete_run(run)
        getattr(store, "_hard_delete_run", str)(run)
    for model in sorted(uri.removeprefix("models:/") for uri in models):
        client.delete_logged_model(model)
        getattr(store, "_hard_delete_logged_model", str)(model)


def _own_folders(places: list[str], owners: set[str]) -> Iterator[Path]:
    """Yield the local folders that hold the files of one run or model only."""
    names = {owner.removeprefix("models:/") for owner in owners}
    for place in places:
        parts = urlsplit(place)
        folder = Path(unquote(parts.path)).parent
        if parts.scheme in ("", "file") and folder.name in names:
            yield folder
