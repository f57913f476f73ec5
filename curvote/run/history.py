"""What was planned and done: the record of each run, in the order they were begun."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from curvote.chain.axis import Cell
from curvote.durable import owner_folder
from curvote.errors import UserError
from curvote.run import records
from curvote.run.config.file import Configured
from curvote.run.plan.step import Step
from curvote.run.project import Project
from curvote.run.record_index import forget

_LOCKS: dict[str, IO[bytes]] = {}  # of the runs of this process, by their ids
_MOST_BACK = 10**9  # runs; no project has more, and no database counts further


@dataclass(frozen=True)
class RunRecord:
    """One execution of a pipeline.

    ``status`` is running, completed, partial (``--only``), blocked (waits for
    envelopes), failed, interrupted or killed; ``owner`` names the process that runs it.
    ``sequence`` is its place among all runs, whatever the clock says; 0 until it is
    saved, and in the records of earlier versions, which come before all others. ``why``
    is what a failed run said, or what a blocked one waits for; one that could not even
    be planned has no steps.
    """

    id: str
    pipeline: str
    started: str
    overrides: list[str]
    config: dict[str, Any]
    steps: list[dict[str, Any]]
    status: str = "running"
    finished: str | None = None
    mlflow_run: str | None = None
    owner: str = ""
    sequence: int = 0
    why: str = ""

    def keys(self, stage: str) -> list[tuple[Cell, str]]:
        """Return the (cell, key) pairs of one stage."""
        mine = (step for step in self.steps if step["stage"] == stage)
        return [(Cell.of(step["cell"]), step["key"]) for step in mine]


def begin(
    project: Project, configured: Configured, steps: Iterable[Step], owner: str
) -> RunRecord:
    """Write down a run that the process ``owner`` is about to start."""
    made = replace(
        _new(project, configured.name, owner),
        overrides=list(configured.overrides),
        config=configured.values(),
        steps=[_planned(step) for step in steps],
    )
    return save(project, made)


def refused(project: Project, pipeline: str, why: str, owner: str) -> RunRecord:
    """Write down a run that could not be planned, and what was said of it."""
    record = save(project, _new(project, pipeline, owner))
    return finish(project, record, "failed", why)


def _new(project: Project, pipeline: str, owner: str) -> RunRecord:
    started = datetime.now(UTC)
    while records.read(project, _name(started)):  # a clock may strike twice
        started += timedelta(microseconds=1)
    moment = started.isoformat(timespec="seconds")
    return RunRecord(_name(started), pipeline, moment, [], {}, [], owner=owner)


def _name(started: datetime) -> str:
    return f"{started:%Y%m%d-%H%M%S-%f}"


def _planned(step: Step) -> dict[str, Any]:
    told = {
        "stage": step.stage.name,
        "cell": step.cell.to_json(),
        "key": step.key,
        "action": step.told,
        "reason": step.reason,
    }
    return told | ({"earlier": step.earlier.key} if step.earlier else {})


def finish(
    project: Project, record: RunRecord, status: str, why: str = ""
) -> RunRecord:
    """Write down how a run ended, and why it failed or waits."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    done = save(project, replace(record, status=status, finished=now, why=why))
    if lock := _LOCKS.pop(record.id, None):
        Path(lock.name).unlink(missing_ok=True)
        lock.close()
    return done


def end_killed(project: Project, is_alive: Callable[[str], bool]) -> None:
    """Write down which runs ended without a word: their process is gone."""
    for run, owner in records.running(project):
        there = under_way(project, run, owner, is_alive)
        record = None if there else load(project, run)
        if record and record.status == "running":
            finish(project, record, "killed", "its process was ended")


def under_way(
    project: Project, run: str, owner: str, is_alive: Callable[[str], bool]
) -> bool:
    """Say whether the process of a run is there: by its name, or by the lock it holds.

    A process in another container has no name here, and its lock is the same.
    """
    if is_alive(owner):
        return True
    try:
        with _lock(project, run).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def hold(project: Project, run: str) -> None:
    """Hold the lock of a run until it has finished, or this process has ended."""
    place = _lock(project, run)
    owner_folder(place.parent)
    lock = _LOCKS[run] = place.open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock(project: Project, run: str) -> Path:
    return project.state / "running" / run


def save(project: Project, record: RunRecord) -> RunRecord:
    """Store a record; it replaces an earlier state of the same run."""
    return _record(records.write(project, asdict(record)))


def load(project: Project, run: str) -> RunRecord | None:
    """Return the record of a run; None where there is none that can be read."""
    found = records.read(project, run)
    return _record(found) if found else None


def load_all(project: Project, pipeline: str | None = None) -> list[RunRecord]:
    """Return the records, oldest first, after reading each: prefer the index."""
    return loaded(project, lambda: records.ids(project, pipeline))


def loaded(project: Project, wanted: Callable[[], list[str]]) -> list[RunRecord]:
    """Read the records that the index names; unreadable files are passed over."""
    found = [load(project, run) for run in wanted()]
    if None in found:  # damaged in its place since it was entered
        forget(project)
        found = [load(project, run) for run in wanted()]
    return [record for record in found if record]


def latest(project: Project, pipeline: str) -> RunRecord | None:
    """Return the latest run of a pipeline, however it ended."""
    found = loaded(project, lambda: records.newest(project, pipeline))
    return found[-1] if found else None


def completed(project: Project, pipeline: str, run: str | None = None) -> RunRecord:
    """Return the latest completed run of a pipeline, or the one named ``run``.

    A name is a run's id, or NAME~N: the Nth before the latest of the pipeline.
    """
    own, found, back = (run or "").partition("~")
    if found and own == pipeline and back.isdecimal():
        return before_latest(project, pipeline, int(back))
    named = load(project, run) if run and run == Path(run).name else None
    if named and (named.pipeline, named.status) == (pipeline, "completed"):
        return named
    count = 5 if run else 1
    done = loaded(
        project, lambda: records.newest(project, pipeline, "completed", count)
    )
    if done and not run:
        return done[-1]
    if done:
        known = ", ".join(r.id for r in done)
        raise UserError(f"no completed run {run!r} of {pipeline}. The latest: {known}.")
    raise UserError(f"{pipeline} has no completed run; `curvote run {pipeline}` first.")


def before_latest(project: Project, pipeline: str, count: int) -> RunRecord:
    """Return the completed run ``count`` before the latest; UserError: none."""
    asked = min(count, _MOST_BACK)
    wanted = pipeline, "completed", asked + 1
    done = loaded(project, lambda: records.newest(project, *wanted))
    if len(done) > asked:
        return done[0]
    if not done:
        return completed(project, pipeline)  # says what there is not
    raise UserError(
        f"{pipeline} has {len(done)} completed runs: {pipeline}~{len(done) - 1} is the"
        f" first; `curvote runs {pipeline}` lists them."
    )


def unlogged(project: Project) -> list[RunRecord]:
    """Return the completed runs that MLflow does not have, oldest first."""
    return loaded(project, lambda: records.unlogged(project))


def _record(content: dict[str, Any]) -> RunRecord:
    return RunRecord(**{field.name: content[field.name] for field in fields(RunRecord)})
