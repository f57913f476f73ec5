"""What runs left: records of runs that never ended, locks, artifacts that changed."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from curvote.flows.environment import is_alive
from curvote.flows.examining.finding import Finding, short
from curvote.run import history, places
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.status import state_of
from curvote.run.store.artifacts import Artifact, folders, manifest_of


def going_on(project: Project) -> list[RunRecord]:
    """Return the records of runs whose process lives."""
    return [r for r in _running(project) if state_of(project, r, is_alive) == "running"]


def stale(project: Project) -> list[RunRecord]:
    """Return the records of runs whose process has gone without a word."""
    return [r for r in _running(project) if state_of(project, r, is_alive) == "killed"]


def _running(project: Project) -> list[RunRecord]:
    return [r for r in history.load_all(project) if r.status == "running"]


def runs(project: Project) -> Iterator[Finding]:
    """Look for runs that are on record as running and are not."""
    gone = stale(project)
    if gone:
        words = f"on record as running, but ended: {short([r.id for r in gone])}"
        fix = "`curvote doctor --fix` notes that they were killed; so does the next run"
        yield Finding("stale runs", "warning", words, fix)
    elif history.load_all(project):
        yield Finding("stale runs", "ok", f"{len(going_on(project))} running")


def records(project: Project) -> Iterator[Finding]:
    """Look for records that nobody can read."""
    files = sorted((project.state / "runs").glob("*.json"))
    torn = [path.name for path in files if not _readable(path)]
    if torn:
        words = f"{project.state / 'runs'}: not readable: {short(torn)}"
        fix = "put them back from a backup, or move them away: those runs are forgotten"
        yield Finding("run records", "warning", words, fix)
    elif files:
        yield Finding("run records", "ok", f"{len(files)} readable")


def locks(project: Project) -> Iterator[Finding]:
    """Look for locks of stages that are held while no run is known to go on.

    That of MLflow is held after a run, too: it is logged then.
    """
    paths = [*(project.state / "locks").glob("*")]
    held = [path.name for path in sorted(paths) if _held(path)]
    if held and not going_on(project):
        words = f"held while no run goes on: {short(held)}"
        fix = f"end what holds them: `fuser {project.state / 'locks' / '*'}` names it"
        yield Finding("locks", "warning", words, fix)
    elif paths:
        yield Finding("locks", "ok", f"{len(held)} held")


def artifacts(project: Project) -> Iterator[Finding]:
    """Read all that is stored, and compare it with what was recorded at commit."""
    there = [f for f in folders(project) if f.name[0] != "." and places.there(f)]
    users = _users(project)
    for folder in there:
        problem = Artifact(folder).problem(content=True)
        if problem:
            own = folder.is_relative_to(project.root)  # else in an object store
            where = folder.relative_to(project.root) if own else folder
            fix = _way_out(folder, users.get((folder.parent.name, folder.name)))
            yield Finding("artifacts", "failed", f"{where} is {problem}", fix)
            there = [each for each in there if each != folder]
    if there:
        yield Finding("artifacts", "ok", f"{len(there)} as they were committed")


def object_store(project: Project) -> Iterator[Finding]:
    """Write and delete an object, where artifacts are on an object store."""
    root = places.served(project)
    if places.remote(root):
        places.ready(root)
        yield Finding("object store", "ok", f"{root} can be written")


def _way_out(folder: Path, pipeline: str | None) -> str:
    """Say what to do about an artifact that is not what was committed."""
    manifest = manifest_of(folder)
    if manifest is not None and not manifest.get("frozen"):
        stage = folder.parent.name
        run = f"`curvote run {pipeline or 'PIPELINE'} --force {stage}`"
        return f"`curvote doctor --fix` sets it aside; {run} does, and computes it anew"
    return (
        "if it was released, put it back from a backup: it cannot be made again;"
        f" if not, `curvote run {pipeline or 'PIPELINE'}` computes it anew"
    )


def _users(project: Project) -> dict[tuple[str, str], str]:
    """Return the pipeline that used each stage and key last."""
    return {
        (step["stage"], step["key"]): record.pipeline
        for record in history.load_all(project)
        for step in record.steps
    }


def _readable(path: Path) -> bool:
    try:
        return isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False


def _held(path: Path) -> bool:
    with suppress(OSError), path.open("r") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
