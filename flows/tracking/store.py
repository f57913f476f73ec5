"""MLflow's store of a project: location, creation, and deletion of runs."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
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


@contextlib.contextmanager
def one_transaction(client: MlflowClient) -> Iterator[None]:
    """Write what is logged meanwhile in one transaction, where the store is a file.

    MLflow commits after each call, some ten times a cell, and a commit waits for the
    disk. Here its sessions share one connection, and their commits are savepoints.
    Models are registered, and files logged, outside: the registry has its own.
    """
    store: Any = client._tracking_client.store  # noqa: SLF001
    engine = getattr(store, "engine", None)
    if engine is None or engine.dialect.name != "sqlite":
        yield
        return
    from sqlalchemy.orm import Session

    with engine.connect() as connection:
        for words in ("foreign_keys=1", "case_sensitive_like=1", "busy_timeout=20000"):
            connection.exec_driver_sql(f"PRAGMA {words}")  # MLflow's own
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        session_maker = store.ManagedSessionMaker

        @contextlib.contextmanager
        def shared_session(read_only: bool = True) -> Iterator[Session]:
            del read_only
            mode: Any = "create_savepoint"
            with Session(bind=connection, join_transaction_mode=mode) as session:
                yield session
                session.commit()

        store.ManagedSessionMaker = shared_session
        try:
            yield
            connection.commit()
        finally:
            store.ManagedSessionMaker = session_maker


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
    free = (n for n in names if client.get_experiment_by_name(n) is None)
    return str(client.create_experiment(next(free, last), place))


def find_experiment(client: MlflowClient, project: Project, name: str) -> Any:
    """Return the experiment of a pipeline of this project, or None."""
    place = artifact_root(project)
    names = _experiment_names(project, name)
    existing = [*filter(None, map(client.get_experiment_by_name, names))]
    local = [e for e in existing if place in (None, e.artifact_location)]
    # A file is this project's own: what lies elsewhere was there before it moved.
    return next(iter(local or (existing if _is_local_file() else [])), None)


def artifact_root(project: Project) -> str | None:
    """Return where MLflow keeps files of runs; None: its server decides."""
    stated_root = None
    if project.pipelines_file.is_file():
        stated_root = PipelinesFile(project).runtime().mlflow.artifacts
    if stated_root is not None:
        path = (project.root / stated_root).resolve()
        return stated_root if "://" in stated_root else path.as_uri()
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
    experiments = [e.experiment_id for e in client.search_experiments()]
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


def delete_runs(
    project: Project, parents: Collection[str], *, dry_run: bool
) -> tuple[set[str], list[Path]]:
    """Delete parent runs with their children, and models of no other run.

    A run whose figures another one shows stays, and so does a model of a registered
    version that has an alias. Returns the deleted parents, and the folders that they
    leave, which are for the caller to delete. Raises whatever MLflow raises.
    """
    from mlflow.exceptions import MlflowException

    client = connect(project)
    deleted: set[str] = set()
    families: list[list[Run]] = []  # a parent, then its children
    for run_id in parents:
        try:
            parent = client.get_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            deleted.add(run_id)
            continue
        # Another run, which remains, may show this one's report.
        experiment = [parent.info.experiment_id]
        linking = client.search_runs(experiment, f"tags.figures_run = '{run_id}'")
        if all(other.info.run_id in parents for other in linking):
            wanted = f"tags.`mlflow.parentRunId` = '{run_id}'"
            families.append([parent, *client.search_runs(experiment, wanted)])
    ids = {run.info.run_id for family in families for run in family}
    places = [str(run.info.artifact_uri) for family in families for run in family]
    models = {m for f in families for m in _unused_models(client, f, ids)}
    names = sorted(uri.removeprefix("models:/") for uri in models)
    for name in names:
        with contextlib.suppress(MlflowException):
            places.append(str(client.get_logged_model(name).artifact_location))
    if not dry_run:
        for family in families:
            wanted = f"run_id = '{family[0].info.run_id}'"
            for version in client.search_model_versions(wanted):
                if version.source in models or not version.aliases:
                    client.delete_model_version(version.name, version.version)
        # Only the store itself deletes for good; a server keeps what it is told to.
        store = client._tracking_client.store  # noqa: SLF001
        for run_id in sorted(ids):
            client.delete_run(run_id)
            getattr(store, "_hard_delete_run", str)(run_id)
        for name in names:
            client.delete_logged_model(name)
            getattr(store, "_hard_delete_logged_model", str)(name)
    # The local folders that hold the files of one run or model only.
    parts = [urlsplit(place) for place in places]
    local = (Path(unquote(p.path)).parent for p in parts if p.scheme in ("", "file"))
    folders = [folder for folder in local if folder.name in {*ids, *names}]
    deleted |= {family[0].info.run_id for family in families}
    return deleted, folders


def _unused_models(
    client: MlflowClient, family: Sequence[Run], going: Collection[str]
) -> Iterator[str]:
    """Yield a family's models that no remaining run and no aliased version uses."""
    info = family[0].info
    tagged = (run.data.tags.get(_MODEL_TAG) for run in family[1:])
    for uri in {*filter(None, tagged)}:
        wanted = f"tags.{_MODEL_TAG} = '{uri}'"
        using = client.search_runs([info.experiment_id], wanted)
        versions = client.search_model_versions(f"run_id = '{info.run_id}'")
        aliased = any(v.source == uri and v.aliases for v in versions)
        if not aliased and all(run.info.run_id in going for run in using):
            yield uri
