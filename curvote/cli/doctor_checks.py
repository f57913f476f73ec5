"""Doctor's checks of versions, stored runs and releases.

pip resolves some sets of packages that break only when something runs: newer versions
of parts of Prefect and scikit-fda. What curvote requires names them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from curvote.base.errors import UserError
from curvote.flows.databases import Finding, shorten_list
from curvote.flows.environment import is_alive
from curvote.intake.box import Intake
from curvote.intake.store import store_exists
from curvote.ledger.book import open_existing
from curvote.ledger.journal import Journal
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence, ledger_report
from curvote.pipeline.run.status import run_state
from curvote.pipeline.store import locations, records
from curvote.pipeline.store.artifacts import Artifact, all_folders, read_manifest
from curvote.pipeline.store.records import RunRecord

VERSION_REMEDY = "install the tested set again: `pip install -c constraints.txt -e .`"


def check_versions(_project: Project) -> Iterator[Finding]:
    """Check the installed version of every required package."""
    try:
        named = metadata.requires("curvote") or []
    except metadata.PackageNotFoundError:
        return  # run from its folder, never installed: nobody said what it needs
    wrong = [line for text in named if (line := _requirement_problem(text))]
    if wrong:
        yield Finding("versions", "failed", shorten_list(wrong, 5), VERSION_REMEDY)
    else:
        yield Finding("versions", "ok", f"{len(named)} packages as required")


def _requirement_problem(text: str) -> str | None:
    """Return what is wrong with one requirement; an extra may be absent."""
    from packaging.requirements import Requirement

    needed = Requirement(text)
    extra = "extra" in str(needed.marker or "")
    if needed.marker and not extra and not needed.marker.evaluate():
        return None
    try:
        installed = metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return None if extra else f"{needed.name} is not installed"
    if needed.specifier.contains(installed, prereleases=True):
        return None
    return f"{needed.name} {installed} is installed, {needed.specifier} is needed"


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
    return [r for r in records.load_records(project) if r.status == "running"]


def check_runs(project: Project) -> Iterator[Finding]:
    """Check for runs that are recorded as running, but have ended."""
    dead = dead_runs(project)
    if dead:
        words = f"on record as running, but ended: {shorten_list([r.id for r in dead])}"
        fix = "`curvote doctor --fix` notes that they were killed; so does the next run"
        yield Finding("stale runs", "warning", words, fix)
    elif records.load_records(project):
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
        if f.name[0] != "." and locations.artifact_exists(f)
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
    root = locations.server_store(project)
    if locations.is_remote(root):
        locations.check_writable(root)
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
        for record in records.load_records(project)
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


RESTORE_REMEDY = (
    "`curvote ledger restore FILE` with the newest backup; nothing is released before"
)


def check_ledger(project: Project) -> Iterator[Finding]:
    """Check the ledger against store, second copy and run records."""
    if not project.ledger.exists() and not evidence.find_traces(project):
        return
    problems = ledger_report.ledger_problems(project)
    if problems:
        yield Finding("ledger", "failed", shorten_list(problems), RESTORE_REMEDY)
    else:
        yield Finding("ledger", "ok", "knows all that was released")


def check_reservations(project: Project) -> Iterator[Finding]:
    """Check for releases that were neither confirmed nor cancelled."""
    book = open_existing(project.ledger)
    if book is None:
        return
    with book:
        waiting = [e for e in book.entries() if e.state == "reserved"]
    if waiting and not live_runs(project):
        words = shorten_list([f"{e.release[:12]} of {e.population}" for e in waiting])
        fix = "run its pipeline again: it settles what was begun"
        yield Finding("reservations", "warning", f"not settled: {words}", fix)
    else:
        yield Finding("reservations", "ok", f"{len(waiting)} under way")


def check_witnesses(project: Project) -> Iterator[Finding]:
    """Check that every witness of a pipeline can be appended to."""
    for path in sorted(_witness_paths(project)):
        problem = _append_problem(path)
        if problem:
            words = f"{path}: {problem}"
            fix = "mount it, or allow writing to it: nothing is released without it"
            yield Finding("witness", "failed", words, fix)
        else:
            yield Finding("witness", "ok", f"{path} can be appended to")
            if torn := Journal(path).count_unreadable():
                words = f"{path}: lines cannot be read: {torn}"
                fix = (
                    "nothing, if a process was killed while it wrote: the next told the"
                    " same again. Else somebody has altered it: ask who may write to it"
                )
                yield Finding("witness", "warning", words, fix)


def check_intake(project: Project) -> Iterator[Finding]:
    """Check the intake's rounds against the published tasks."""
    published = {
        (folder.name, file.name.removesuffix(".task.json"))
        for folder in project.published("x").parent.glob("*")
        for file in folder.glob("*.task.json")
    }
    if not store_exists(project.intake):
        if published:
            words = f"{project.intake} is gone; {len(published)} tasks are published"
            yield Finding("intake", "failed", words, _INTAKE_REMEDY)
        return
    with Intake(project.intake) as opened:
        rounds = opened.rounds()
    all_rounds = {(r.pipeline, f"{r.asks}-{r.task.number}") for r in rounds}
    open_rounds = {
        (r.pipeline, f"{r.asks}-{r.task.number}") for r in rounds if not r.closed
    }
    lost, unpublished = sorted(published - all_rounds), sorted(open_rounds - published)
    if lost:
        words = f"published, but in no round: {shorten_list([*map('/'.join, lost)])}"
        yield Finding("intake", "failed", words, _INTAKE_REMEDY)
    if unpublished:
        words = (
            f"open, but not published: {shorten_list([*map('/'.join, unpublished)])}"
        )
        yield Finding("intake", "warning", words, f"`curvote run {unpublished[0][0]}`")
    if not lost and not unpublished:
        yield Finding("intake", "ok", f"{len(rounds)} rounds as published")


_INTAKE_REMEDY = (
    "put the intake's latest backup in its place: it knows who has answered"
)


def _witness_paths(project: Project) -> set[Path]:
    file, pipelines = PipelinesFile(project), []
    for name in file.names():
        with suppress(UserError):  # what is wrong there is said by another check
            pipelines.append(file.configure_pipeline(name).pipeline)
    accounts = (pipeline.ledger for pipeline in pipelines)
    return {
        project.root / account.witness
        for account in accounts
        if account and account.witness
    }


def _append_problem(path: Path) -> str | None:
    """Return why a file cannot be appended to; None: it can."""
    if path.exists():
        try:
            path.open("ab").close()
        except OSError as error:
            return error.strerror or str(error)
        return None
    if not path.parent.is_dir():
        return f"the folder {path.parent} is not there"
    return None if os.access(path.parent, os.W_OK) else "its folder cannot be written"
