"""Repairs and checks of `curvote doctor`; repairs lose nothing."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from importlib import metadata

from curvote.base.errors import UserError
from curvote.base.object_store import is_remote
from curvote.flows import environment, machine
from curvote.flows.machine import MLFLOW, Finding, shorten_list
from curvote.intake.box import Intake
from curvote.intake.store import store_exists
from curvote.ledger.book import open_existing
from curvote.ledger.journal import Journal
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence
from curvote.pipeline.run.history import run_state
from curvote.pipeline.store import artifacts, locations, records

VERSION_REMEDY = "install the tested set again: `pip install -c constraints.txt -e .`"


def check_versions(_project: Project) -> Iterator[Finding]:
    """Check the installed version of every required package."""
    try:
        named = metadata.requires("curvote") or []
    except metadata.PackageNotFoundError:
        return  # run from its folder, never installed: nobody said what it needs
    from packaging.requirements import Requirement

    wrong = []
    for needed in map(Requirement, named):
        extra = "extra" in str(needed.marker or "")  # one may be absent
        if needed.marker and not extra and not needed.marker.evaluate():
            continue
        try:
            installed = metadata.version(needed.name)
        except metadata.PackageNotFoundError:
            wrong += [] if extra else [f"{needed.name} is not installed"]
        else:
            if not needed.specifier.contains(installed, prereleases=True):
                least = f"{needed.specifier} is needed"
                wrong.append(f"{needed.name} {installed} is installed, {least}")
    sound = f"{len(named)} packages as required"
    yield Finding.of("versions", shorten_list(wrong, 5), VERSION_REMEDY, sound)


def runs_in_state(project: Project, state: str) -> list[records.RunRecord]:
    """Return the records of running runs that are "running", or "killed"."""
    running = records.load_records(project, status="running")
    return [r for r in running if run_state(project, r, environment.is_alive) == state]


def check_runs(project: Project) -> Iterator[Finding]:
    """Check for runs that are recorded as running, but have ended."""
    dead = runs_in_state(project, "killed")
    words = f"recorded as running, but ended: {shorten_list([r.id for r in dead])}"
    fix = "`curvote doctor --fix` records that they ended; so does the next run"
    if dead or records.run_ids(project, last=1):
        live = f"{len(runs_in_state(project, 'running'))} running, none lost"
        yield Finding.of("stale runs", words if dead else "", fix, live, "warning")


def check_records(project: Project) -> Iterator[Finding]:
    """Check for records that nobody can read, those of earlier versions among them."""
    files = records.earlier_files(project)
    torn = [path.name for path in files if records.parse_record(path) is None]
    readable = records.check_records(project)
    words = f"{project.state / 'runs'}: not readable: {shorten_list(torn)}"
    fix = "put them back from a backup, or move them away: those runs are forgotten"
    if torn or readable:
        sound = f"{readable} readable"
        yield Finding.of("run records", words if torn else "", fix, sound, "warning")


def check_locks(project: Project) -> Iterator[Finding]:
    """Check for locks of stages that are held while no run is active.

    That of MLflow is held after a run, too: it is logged then.
    """
    paths = sorted((project.state / "locks").glob("*"))
    locked = []
    for path in paths:
        with suppress(OSError), path.open("r") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                locked.append(path.name)
    odd = locked and not runs_in_state(project, "running")
    words = f"still held though no run goes on: {shorten_list(locked)}" if odd else ""
    fix = f"end what holds them: `fuser {project.state / 'locks' / '*'}` names it"
    if paths:
        yield Finding.of("locks", words, fix, f"{len(locked)} in use", "warning")


def check_artifacts(project: Project) -> Iterator[Finding]:
    """Check all stored artifacts against their manifests."""
    visible = (f for f in artifacts.all_folders(project) if f.name[0] != ".")
    sound_folders = [f for f in visible if locations.artifact_exists(f)]
    users = {
        (step["stage"], step["key"]): record.pipeline
        for record in records.load_records(project)
        for step in record.steps
    }
    for folder in sound_folders:
        problem = artifacts.Artifact(folder).problem(content=True)
        if problem:
            in_project = folder.is_relative_to(project.root)  # else in an object store
            where = folder.relative_to(project.root) if in_project else folder
            pipeline = users.get((folder.parent.name, folder.name)) or "PIPELINE"
            manifest = artifacts.read_manifest(folder)
            if manifest is not None and not manifest.get("frozen"):
                fix = (
                    f"`curvote doctor --fix` sets it aside; `curvote run {pipeline}"
                    f" --force {folder.parent.name}` does, and computes it anew"
                )
            else:
                fix = (
                    "if it was released, put it back from a backup: it cannot be made"
                    f" again; if not, `curvote run {pipeline}` computes it anew"
                )
            yield Finding("artifacts", "failed", f"{where} is {problem}", fix)
            sound_folders = [other for other in sound_folders if other != folder]
    if sound_folders:
        yield Finding(
            "artifacts", "ok", f"{len(sound_folders)} sound, as they were stored"
        )


def check_object_store(project: Project) -> Iterator[Finding]:
    """Check that an object store, if there is one, can be written."""
    root = locations.server_store(project)
    if is_remote(root):
        locations.check_writable(root)
        yield Finding("object store", "ok", f"{root} can be written")


RESTORE_REMEDY = (
    "`curvote ledger restore FILE` with the newest backup; till then no release is made"
)


def check_ledger(project: Project) -> Iterator[Finding]:
    """Check the ledger against store, second copy and run records."""
    if not project.ledger.exists() and not evidence.find_traces(project):
        return
    problems = shorten_list(evidence.ledger_problems(project))
    sound = "knows all that was released"
    yield Finding.of("ledger", problems, RESTORE_REMEDY, sound)


def check_reservations(project: Project) -> Iterator[Finding]:
    """Check for releases that were neither confirmed nor cancelled."""
    book = open_existing(project.ledger)
    if book is None:
        return
    with book:
        waiting = [e for e in book.entries() if e.state == "reserved"]
    words = shorten_list([f"{e.release[:12]} of {e.population}" for e in waiting])
    unsettled = waiting and not runs_in_state(project, "running")
    problem = f"not settled: {words}" if unsettled else ""
    fix = "run its pipeline again: that settles what was begun"
    yield Finding.of(
        "reservations", problem, fix, f"{len(waiting)} not confirmed yet", "warning"
    )


def check_witnesses(project: Project) -> Iterator[Finding]:
    """Check that every witness of a pipeline can be appended to."""
    file, pipelines = PipelinesFile(project), []
    for name in file.names():
        with suppress(UserError):  # what is wrong there is said by another check
            pipelines.append(file.configure_pipeline(name).pipeline)
    witnesses = {p.ledger.witness for p in pipelines if p.ledger and p.ledger.witness}
    for path in sorted({project.root / witness for witness in witnesses}):
        problem = ""
        if path.exists():
            try:
                path.open("ab").close()
            except OSError as error:
                problem = error.strerror or str(error)
        elif not path.parent.is_dir():
            problem = f"the folder {path.parent} is not there"
        elif not os.access(path.parent, os.W_OK):
            problem = "its folder cannot be written"
        if problem:
            words = f"{path}: {problem}"
            fix = "mount its disk, allow writing to it: till then no release is made"
            yield Finding("witness", "failed", words, fix)
        else:
            yield Finding("witness", "ok", f"{path} can be written")
            if torn := Journal(path).count_unreadable():
                words = f"{path}: lines cannot be read: {torn}"
                fix = (
                    "none if a process was killed while writing: the next did it again."
                    " Else somebody has altered it: ask who may write to it"
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
    names = [(r.pipeline, f"{r.asks}-{r.task.number}") for r in rounds]
    open_names = {at for r, at in zip(rounds, names, strict=True) if not r.closed}
    lost, unpublished = sorted(published - {*names}), sorted(open_names - published)
    if lost:
        words = f"tasks without a round: {shorten_list([*map('/'.join, lost)])}"
        yield Finding("intake", "failed", words, _INTAKE_REMEDY)
    if unpublished:
        words = f"rounds without a task: {shorten_list([*map('/'.join, unpublished)])}"
        yield Finding("intake", "warning", words, f"`curvote run {unpublished[0][0]}`")
    if not lost and not unpublished:
        yield Finding("intake", "ok", f"{len(rounds)} rounds, all published")


_INTAKE_REMEDY = (
    "put the intake's latest backup in its place: only that knows who has answered"
)


def repair_project(project: Project) -> list[str]:
    """Repair what can lose nothing; return what was done, a line each.

    UserError: a run goes on, or `curvote serve`; nothing is touched then.
    """
    from curvote.flows.server.private import read_serving

    running = [f"run {record.id}" for record in runs_in_state(project, "running")]
    if read_serving(project.state / "prefect"):
        running.append("`curvote serve`")
    if read_serving(project.state / "prefect", environment.WARM_SERVER):
        running.append("a server that waits for further runs (runtime.prefect.keep)")
    if running:
        raise UserError(
            f"{running[0]} is going on; end it, or wait, and then run `curvote doctor"
            " --fix`. Nothing was changed."
        )
    dead = runs_in_state(project, "killed")
    done = [f"run {record.id}: recorded that it was killed" for record in dead]
    records.record_killed(project, environment.is_alive)
    done += _repair_databases(project)
    # A run sees altered artifacts that somebody wrote to; one that a disk changed keeps
    # its size and date. What was released stays where it is: it cannot be made again.
    for folder in artifacts.all_folders(project):
        if folder.name.startswith(".") or not locations.artifact_exists(folder):
            continue
        manifest = artifacts.read_manifest(folder)
        frozen = manifest is None or manifest.get("frozen")
        if not frozen and artifacts.Artifact(folder).problem(content=True):
            new = artifacts.spare_path(folder)
            folder.rename(new)
            name = f"{folder.parent.name}/{folder.name[:12]}"
            done.append(f"{name} set aside as {new.name}")
    lost = set(runs_missing_in_mlflow(project))
    if lost:
        for record in records.load_records(project):
            if record.id in lost:
                records.save_record(project, replace(record, mlflow_run=None))
        from curvote.flows.tracking import log as tracking

        tracking.log_missing_runs(project)
        logged = (r for r in records.load_records(project) if r.id in lost)
        again = len(lost) - sum(r.mlflow_run is None for r in logged)
        done.append(f"{again} of {len(lost)} runs logged again in MLflow")
    return done


def runs_missing_in_mlflow(project: Project) -> list[str]:
    """Return the runs that are recorded as logged, but missing in MLflow.

    None of them where its database is a server, or cannot be read.
    """
    path = MLFLOW.path(project)
    if path is None or MLFLOW.problem(project):
        return []
    logged_ids = set()
    if path.is_file():
        with (
            closing(machine.open_read_only(path)) as db,
            suppress(sqlite3.OperationalError),  # a new database has no table yet
        ):
            logged_ids = {row[0] for row in db.execute("SELECT run_uuid FROM runs")}
    runs = records.load_records(project)
    return [r.id for r in runs if r.mlflow_run and r.mlflow_run not in logged_ids]


def check_tracking(project: Project) -> Iterator[Finding]:
    """Check that MLflow knows the runs that were logged."""
    if lost := runs_missing_in_mlflow(project):
        words = f"MLflow has lost {len(lost)} runs that were logged"
        fix = "`curvote doctor --fix` logs them again from the records"
        yield Finding("MLflow runs", "warning", words, fix)


def _repair_databases(project: Project) -> Iterator[str]:
    for database in machine.DATABASES:
        path, problem = database.path(project), database.problem(project)
        if path is None or problem not in {machine.NOT_SOUND, machine.HALF_MADE}:
            continue
        # What an older MLflow left whole becomes a newer one; what was cut off seldom.
        copy = path.with_name(f".{path.name}.mending")
        copy.unlink(missing_ok=True)
        if problem == machine.HALF_MADE:
            from curvote.flows.tracking.store import migrate_database

            with (
                closing(machine.open_read_only(path)) as before,
                closing(sqlite3.connect(copy)) as after,
            ):
                before.backup(after)
            try:
                migrate_database(copy)
            except Exception:  # noqa: BLE001 - half a schema fails in any way
                copy.unlink(missing_ok=True)
        aside = machine.set_aside(path).name
        if copy.exists():
            copy.replace(path)
            yield f"{path} brought to the newest version; before, it was {aside}"
        else:
            yield f"{path} set aside as {aside}"


def check_pipelines(project: Project) -> Iterator[Finding]:
    """Check that the configuration of every pipeline can be read."""
    file = PipelinesFile(project)
    for name in file.names():
        file.configure_pipeline(name)
    yield Finding("pipelines", "ok", f"{len(file.names())} can be read")


CHECKS: dict[str, machine.Check] = {
    "versions": check_versions,
    "pipelines": check_pipelines,
    "space": machine.check_space,
    "file system": machine.check_file_systems,
    "clock": machine.check_clock,
    "stale runs": check_runs,
    "run records": check_records,
    "locks": check_locks,
    "object store": check_object_store,
    "artifacts": check_artifacts,
    "ledger": check_ledger,
    "reservations": check_reservations,
    "witness": check_witnesses,
    "intake": check_intake,
    "databases": machine.check_databases,
    "MLflow runs": check_tracking,
}


def run_checks(project: Project) -> list[Finding]:
    """Return the findings of all checks; a failing check is a finding."""
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            findings += list(check(project))
        except UserError as error:
            findings.append(Finding(name, "failed", str(error), "as it says"))
        except (OSError, sqlite3.Error, ValueError, KeyError, TypeError) as error:
            words = f"could not be looked at: {type(error).__name__}: {error}"
            fix = "put back from a backup what it names"
            findings.append(Finding(name, "failed", words, fix))
    return findings
