"""What `curvote doctor --fix` does: only what loses nothing, and never beside a run."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from curvote.errors import UserError
from curvote.flows.environment import is_alive
from curvote.flows.examining import databases
from curvote.flows.examining.databases import DESTROYED, MLFLOW, UNFINISHED
from curvote.flows.examining.finding import Finding
from curvote.flows.examining.stored import going_on, stale
from curvote.run import history, places
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, aside, folders, manifest_of


def mend(project: Project) -> list[str]:
    """Mend what can lose nothing; return what was done, a line each.

    UserError: a run goes on, or `curvote serve`; nothing is touched then.
    """
    refuse_beside(project)
    done = [*_ended(project), *_set_aside(project), *_altered(project)]
    return [*done, *_logged(project)]


def refuse_beside(project: Project) -> None:
    """Refuse while anything of the project runs: UserError."""
    from curvote.flows.server.private import served_by

    running = [f"run {record.id}" for record in going_on(project)]
    if served_by(project.state / "prefect"):
        running.append("`curvote serve`")
    if running:
        raise UserError(
            f"{running[0]} is going on; end it, or wait, and then run `curvote doctor"
            " --fix`. Nothing was changed."
        )


def unlogged(project: Project) -> list[str]:
    """Return the runs that are on record as logged, and that MLflow does not know.

    None of them where its database is a server, or cannot be read.
    """
    path = MLFLOW.path(project)
    if path is None or MLFLOW.problem(project):
        return []
    known = _known(path) if path.is_file() else set()
    runs = history.load_all(project)
    return [r.id for r in runs if r.mlflow_run and r.mlflow_run not in known]


def tracked(project: Project) -> Iterator[Finding]:
    """Say whether MLflow knows the runs that were logged."""
    lost = unlogged(project)
    if lost:
        words = f"MLflow knows {len(lost)} runs no more that were logged"
        fix = "`curvote doctor --fix` logs them again from the records"
        yield Finding("MLflow runs", "warning", words, fix)


def _known(path: Path) -> set[str]:
    with contextlib.closing(databases.opened(path)) as db:
        try:
            return {row[0] for row in db.execute("SELECT run_uuid FROM runs")}
        except sqlite3.OperationalError:  # a new database has no table yet
            return set()


def _ended(project: Project) -> Iterator[str]:
    for record in stale(project):
        yield f"run {record.id}: noted that it was killed"
    history.end_killed(project, is_alive)


def _set_aside(project: Project) -> Iterator[str]:
    for each in databases.DATABASES:
        path, problem = each.path(project), each.problem(project)
        if path is None or problem not in {DESTROYED, UNFINISHED}:
            continue
        whole = _migrated(path) if problem == UNFINISHED else None
        aside = databases.set_aside(path).name
        if whole is None:
            yield f"{path} set aside as {aside}"
        else:
            whole.replace(path)
            yield f"{path} brought to the newest version; before, it was {aside}"


def _migrated(path: Path) -> Path | None:
    """Return a copy of a database with all of MLflow's migrations, None: it cannot be.

    What an older MLflow left whole becomes a newer one; what was cut off seldom does.
    """
    from curvote.flows.tracking.store import migrate

    copy = path.with_name(f".{path.name}.mending")
    copy.unlink(missing_ok=True)
    with (
        contextlib.closing(databases.opened(path)) as before,
        contextlib.closing(sqlite3.connect(copy)) as after,
    ):
        before.backup(after)
    try:
        migrate(copy)
    except Exception:  # noqa: BLE001 - migrations over half a schema fail in any way
        copy.unlink(missing_ok=True)
        return None
    return copy


def _altered(project: Project) -> Iterator[str]:
    """Set artifacts of studies aside that are not what was committed.

    A run sees those that somebody wrote to; one that a disk changed keeps its size and
    date. What was released stays where it is: it cannot be made again.
    """
    for folder in folders(project):
        if folder.name.startswith(".") or not places.there(folder):
            continue
        manifest = manifest_of(folder)
        if manifest is None or manifest.get("frozen"):
            continue
        if Artifact(folder).problem(content=True):
            new = aside(folder)
            folder.rename(new)
            yield f"{folder.parent.name}/{folder.name[:12]} set aside as {new.name}"


def _logged(project: Project) -> Iterator[str]:
    """Have MLflow log again what it lacks."""
    lost = set(unlogged(project))
    if not lost:
        return
    for record in history.load_all(project):
        if record.id in lost:
            history.save(project, replace(record, mlflow_run=None))
    from curvote.flows.tracking import log as tracking

    tracking.repair(project)
    left = sum(r.mlflow_run is None for r in history.load_all(project) if r.id in lost)
    yield f"{len(lost) - left} of {len(lost)} runs logged again in MLflow"
