"""Repairs and checks of `curvote doctor`; repairs lose nothing."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from curvote.base.errors import UserError
from curvote.cli import doctor_checks
from curvote.cli.doctor_checks import dead_runs, live_runs
from curvote.flows import databases, machine
from curvote.flows.databases import HALF_MADE, MLFLOW, NOT_SOUND, Check, Finding
from curvote.flows.environment import is_alive
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import locations, records
from curvote.pipeline.store.artifacts import (
    Artifact,
    all_folders,
    read_manifest,
    spare_path,
)


def repair_project(project: Project) -> list[str]:
    """Repair what can lose nothing; return what was done, a line each.

    UserError: a run goes on, or `curvote serve`; nothing is touched then.
    """
    refuse_while_running(project)
    done = [
        *_record_killed(project),
        *_repair_databases(project),
        *_set_altered_aside(project),
    ]
    return [*done, *_log_missing_runs(project)]


def refuse_while_running(project: Project) -> None:
    """Refuse (UserError) while a run or `curvote serve` is active."""
    from curvote.flows.server.private import read_serving

    running = [f"run {record.id}" for record in live_runs(project)]
    if read_serving(project.state / "prefect"):
        running.append("`curvote serve`")
    if running:
        raise UserError(
            f"{running[0]} is going on; end it, or wait, and then run `curvote doctor"
            " --fix`. Nothing was changed."
        )


def runs_missing_in_mlflow(project: Project) -> list[str]:
    """Return the runs that are recorded as logged, but missing in MLflow.

    None of them where its database is a server, or cannot be read.
    """
    path = MLFLOW.path(project)
    if path is None or MLFLOW.problem(project):
        return []
    logged_ids = _mlflow_run_ids(path) if path.is_file() else set()
    runs = records.load_records(project)
    return [r.id for r in runs if r.mlflow_run and r.mlflow_run not in logged_ids]


def check_tracking(project: Project) -> Iterator[Finding]:
    """Check that MLflow knows the runs that were logged."""
    lost = runs_missing_in_mlflow(project)
    if lost:
        words = f"MLflow knows {len(lost)} runs no more that were logged"
        fix = "`curvote doctor --fix` logs them again from the records"
        yield Finding("MLflow runs", "warning", words, fix)


def _mlflow_run_ids(path: Path) -> set[str]:
    with contextlib.closing(databases.open_read_only(path)) as db:
        try:
            return {row[0] for row in db.execute("SELECT run_uuid FROM runs")}
        except sqlite3.OperationalError:  # a new database has no table yet
            return set()


def _record_killed(project: Project) -> Iterator[str]:
    for record in dead_runs(project):
        yield f"run {record.id}: noted that it was killed"
    records.record_killed(project, is_alive)


def _repair_databases(project: Project) -> Iterator[str]:
    for database in databases.DATABASES:
        path, problem = database.path(project), database.problem(project)
        if path is None or problem not in {NOT_SOUND, HALF_MADE}:
            continue
        migrated = _migrated_copy(path) if problem == HALF_MADE else None
        aside = databases.set_aside(path).name
        if migrated is None:
            yield f"{path} set aside as {aside}"
        else:
            migrated.replace(path)
            yield f"{path} brought to the newest version; before, it was {aside}"


def _migrated_copy(path: Path) -> Path | None:
    """Return a copy of a database with all migrations; None: they failed.

    What an older MLflow left whole becomes a newer one; what was cut off seldom does.
    """
    from curvote.flows.tracking.store import migrate_database

    copy = path.with_name(f".{path.name}.mending")
    copy.unlink(missing_ok=True)
    with (
        contextlib.closing(databases.open_read_only(path)) as before,
        contextlib.closing(sqlite3.connect(copy)) as after,
    ):
        before.backup(after)
    try:
        migrate_database(copy)
    except Exception:  # noqa: BLE001 - migrations over half a schema fail in any way
        copy.unlink(missing_ok=True)
        return None
    return copy


def _set_altered_aside(project: Project) -> Iterator[str]:
    """Set altered artifacts of studies aside.

    A run sees those that somebody wrote to; one that a disk changed keeps its size and
    date. What was released stays where it is: it cannot be made again.
    """
    for folder in all_folders(project):
        if folder.name.startswith(".") or not locations.artifact_exists(folder):
            continue
        manifest = read_manifest(folder)
        if manifest is None or manifest.get("frozen"):
            continue
        if Artifact(folder).problem(content=True):
            new = spare_path(folder)
            folder.rename(new)
            yield f"{folder.parent.name}/{folder.name[:12]} set aside as {new.name}"


def _log_missing_runs(project: Project) -> Iterator[str]:
    """Log runs again that are missing in MLflow."""
    lost = set(runs_missing_in_mlflow(project))
    if not lost:
        return
    for record in records.load_records(project):
        if record.id in lost:
            records.save_record(project, replace(record, mlflow_run=None))
    from curvote.flows.tracking import log as tracking

    tracking.log_missing_runs(project)
    remaining = sum(
        r.mlflow_run is None for r in records.load_records(project) if r.id in lost
    )
    yield f"{len(lost) - remaining} of {len(lost)} runs logged again in MLflow"


def check_pipelines(project: Project) -> Iterator[Finding]:
    """Check that the configuration of every pipeline can be read."""
    file = PipelinesFile(project)
    for name in file.names():
        file.configure_pipeline(name)
    yield Finding("pipelines", "ok", f"{len(file.names())} can be read")


CHECKS: dict[str, Check] = {
    "versions": doctor_checks.check_versions,
    "pipelines": check_pipelines,
    "space": machine.check_space,
    "file system": machine.check_file_systems,
    "clock": machine.check_clock,
    "stale runs": doctor_checks.check_runs,
    "run records": doctor_checks.check_records,
    "locks": doctor_checks.check_locks,
    "object store": doctor_checks.check_object_store,
    "artifacts": doctor_checks.check_artifacts,
    "ledger": doctor_checks.check_ledger,
    "reservations": doctor_checks.check_reservations,
    "witness": doctor_checks.check_witnesses,
    "intake": doctor_checks.check_intake,
    "databases": databases.check_databases,
    "MLflow runs": check_tracking,
}


def run_checks(project: Project) -> list[Finding]:
    """Return the findings of all checks; a failing check is a finding."""
    return [finding for name in CHECKS for finding in _run_check(name, project)]


def _run_check(name: str, project: Project) -> list[Finding]:
    try:
        return list(CHECKS[name](project))
    except UserError as error:
        return [Finding(name, "failed", str(error), "as it says")]
    except (OSError, sqlite3.Error, ValueError, KeyError, TypeError) as error:
        words = f"could not be looked at: {type(error).__name__}: {error}"
        return [Finding(name, "failed", words, "put what it names back from a backup")]
