"""Doctor's checks of stored runs: records, locks and artifacts."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from curvote.flows.environment import is_alive
from curvote.flows.examining.finding import Finding, shorten_list
from curvote.run import history, places
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.status import run_state
from curvote.run.store.artifacts import Artifact, all_folders, read_manifest


def live_runs(project: Project) -> list[RunRecord]:
    """Return the records of runs whose process lives."""
    return [
        r
        for r in _running_records(project)
        if run_state(project, r, is_alive) == "running"
    ]


def dead_runs(project: Project) -> list[RunRecord]:
    """Return the records of running runs whose process is gone."""
    return [
        r
        for r in _running_records(project)
        if run_state(project, r, is_alive) == "killed"
    ]


def _running_records(project: Project) -> list[RunRecord]:
    return [r for r in history.load_records(project) if r.status == "running"]


def check_runs(project: Project) -> Iterator[Finding]:
    """Check for runs that are recorded as running, but have ended."""
    dead = dead_runs(project)
    if dead:
        words = f"on record as running, but ended: {shorten_list([r.id for r in dead])}"
        fix = "`curvote doctor --fix` notes that they were killed; so does the next run"
        yield Finding("stale runs", "warning", words, fix)
    elif history.load_records(project):
        yield Finding("stale runs", "ok", f"{len(live_runs(project))} running")


def check_records(project: Project) -> Iterator[Finding]:
    """Check for records that nobody can read."""
    files = sorted((project.state / "runs").glob("*.json"))
    torn = [path.name for path in files if not _is_readable(path)]
    if torn:
        words = f"{project.state / 'runs'}: not readable: {shorten_list(torn)}"
        fix = "put them back from a backup, or move them away: those runs are forgotten"
        yield Finding("run records", "warning", words, fix)
    elif files:
        yield Finding("run records", "ok", f"{len(files)} readable")


def check_locks(project: Project) -> Iterator[Finding]:
    """Check for locks of stages that are held while no run is active.

    That of MLflow is held after a run, too: it is logged then.
    """
    paths = [*(project.state / "locks").glob("*")]
    locked = [path.name for path in sorted(paths) if _is_locked(path)]
    if locked and not live_runs(project):
        words = f"held while no run goes on: {shorten_list(locked)}"
        fix = f"end what holds them: `fuser {project.state / 'locks' / '*'}` names it"
        yield Finding("locks", "warning", words, fix)
    elif paths:
        yield Finding("locks", "ok", f"{len(locked)} held")


def check_artifacts(project: Project) -> Iterator[Finding]:
    """Check all stored artifacts against their manifests."""
    sound_folders = [
        f
        for f in all_folders(project)
        if f.name[0] != "." and places.artifact_exists(f)
    ]
    users = _last_users(project)
    for folder in sound_folders:
        problem = Artifact(folder).problem(content=True)
        if problem:
            in_project = folder.is_relative_to(project.root)  # else in an object store
            where = folder.relative_to(project.root) if in_project else folder
            fix = _artifact_remedy(folder, users.get((folder.parent.name, folder.name)))
            yield Finding("artifacts", "failed", f"{where} is {problem}", fix)
            sound_folders = [other for other in sound_folders if other != folder]
    if sound_folders:
        yield Finding("artifacts", "ok", f"{len(sound_folders)} as they were committed")


def check_object_store(project: Project) -> Iterator[Finding]:
    """Check that an object store, if there is one, can be written."""
    root = places.server_store(project)
    if places.is_remote(root):
        places.check_writable(root)
        yield Finding("object store", "ok", f"{root} can be written")


def _artifact_remedy(folder: Path, pipeline: str | None) -> str:
    """Return the remedy for an altered artifact."""
    manifest = read_manifest(folder)
    if manifest is not None and not manifest.get("frozen"):
        stage = folder.parent.name
        run = f"`curvote run {pipeline or 'PIPELINE'} --force {stage}`"
        return f"`curvote doctor --fix` sets it aside; {run} does, and computes it anew"
    return (
        "if it was released, put it back from a backup: it cannot be made again;"
        f" if not, `curvote run {pipeline or 'PIPELINE'}` computes it anew"
    )


def _last_users(project: Project) -> dict[tuple[str, str], str]:
    """Return the pipeline that used each stage and key last."""
    return {
        (step["stage"], step["key"]): record.pipeline
        for record in history.load_records(project)
        for step in record.steps
    }


def _is_readable(path: Path) -> bool:
    try:
        return isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False


def _is_locked(path: Path) -> bool:
    with suppress(OSError), path.open("r") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
