"""Records of runs: plan, state and outcome, in the order in which they started."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from curvote.base.durable import private_folder
from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step
from curvote.pipeline.store import records
from curvote.pipeline.store.records import drop_index

_LOCKS: dict[str, IO[bytes]] = {}  # of the runs of this process, by their ids
_MAX_RUNS_BACK = 10**9  # runs; no project has more, and no database counts further


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

    def stage_keys(self, stage: str) -> list[tuple[Cell, str]]:
        """Return the (cell, key) pairs of one stage."""
        stage_steps = (step for step in self.steps if step["stage"] == stage)
        return [(Cell.from_mapping(step["cell"]), step["key"]) for step in stage_steps]


def record_start(
    project: Project, configured: ConfiguredPipeline, steps: Iterable[Step], owner: str
) -> RunRecord:
    """Write the record of a run that the process ``owner`` is about to start."""
    record = replace(
        _new_record(project, configured.name, owner),
        overrides=list(configured.overrides),
        config=configured.values(),
        steps=[_planned_step(step) for step in steps],
    )
    return save_record(project, record)


def record_refusal(project: Project, pipeline: str, why: str, owner: str) -> RunRecord:
    """Write the record of a run that could not be planned, with the reason."""
    record = save_record(project, _new_record(project, pipeline, owner))
    return record_end(project, record, "failed", why)


def _new_record(project: Project, pipeline: str, owner: str) -> RunRecord:
    started = datetime.now(UTC)
    while records.read_record(project, _run_id(started)):  # a clock may strike twice
        started += timedelta(microseconds=1)
    moment = started.isoformat(timespec="seconds")
    return RunRecord(_run_id(started), pipeline, moment, [], {}, [], owner=owner)


def _run_id(started: datetime) -> str:
    return f"{started:%Y%m%d-%H%M%S-%f}"


def _planned_step(step: Step) -> dict[str, Any]:
    entry = {
        "stage": step.stage.name,
        "cell": step.cell.to_json(),
        "key": step.key,
        "action": step.reported_action,
        "reason": step.reason,
    }
    return entry | ({"earlier": step.earlier.key} if step.earlier else {})


def record_end(
    project: Project, record: RunRecord, status: str, why: str = ""
) -> RunRecord:
    """Write down how a run ended, and why it failed or waits."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    done = save_record(project, replace(record, status=status, finished=now, why=why))
    if lock := _LOCKS.pop(record.id, None):
        Path(lock.name).unlink(missing_ok=True)
        lock.close()
    return done


def record_killed(project: Project, is_alive: Callable[[str], bool]) -> None:
    """Write down that runs were killed whose processes are gone."""
    for run, owner in records.unfinished_runs(project):
        there = is_running(project, run, owner, is_alive)
        record = None if there else load_record(project, run)
        if record and record.status == "running":
            record_end(project, record, "killed", "its process was ended")


def is_running(
    project: Project, run: str, owner: str, is_alive: Callable[[str], bool]
) -> bool:
    """Return whether a run's process lives, by its name or by its lock.

    A process in another container has no name here, and its lock is the same.
    """
    if is_alive(owner):
        return True
    try:
        with _lock_path(project, run).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def hold_run_lock(project: Project, run: str) -> None:
    """Hold the lock of a run until it has finished, or this process has ended."""
    place = _lock_path(project, run)
    private_folder(place.parent)
    lock = _LOCKS[run] = place.open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_path(project: Project, run: str) -> Path:
    return project.state / "running" / run


def save_record(project: Project, record: RunRecord) -> RunRecord:
    """Store a record; it replaces an earlier state of the same run."""
    return _from_content(records.write_record(project, asdict(record)))


def load_record(project: Project, run: str) -> RunRecord | None:
    """Return the record of a run; None: there is no readable one."""
    content = records.read_record(project, run)
    return _from_content(content) if content else None


def load_records(project: Project, pipeline: str | None = None) -> list[RunRecord]:
    """Return all records, oldest first, after reading each file."""
    return read_records(project, lambda: records.run_ids(project, pipeline))


def read_records(
    project: Project, find_ids: Callable[[], list[str]]
) -> list[RunRecord]:
    """Return the records of ids that the index finds; unreadable ones are left out."""
    loaded_records = [load_record(project, run) for run in find_ids()]
    if None in loaded_records:  # damaged in its place since it was entered
        drop_index(project)
        loaded_records = [load_record(project, run) for run in find_ids()]
    return [record for record in loaded_records if record]


def latest_run(project: Project, pipeline: str) -> RunRecord | None:
    """Return the latest run of a pipeline, however it ended."""
    runs = read_records(project, lambda: records.newest_ids(project, pipeline))
    return runs[-1] if runs else None


def completed_run(project: Project, pipeline: str, run: str | None = None) -> RunRecord:
    """Return the latest completed run of a pipeline, or the named one.

    A name is a run's id, or NAME~N: the Nth before the latest of the pipeline.
    """
    name, tilde, back = (run or "").partition("~")
    if tilde and name == pipeline and back.isdecimal():
        return earlier_run(project, pipeline, int(back))
    named = load_record(project, run) if run and run == Path(run).name else None
    if named and (named.pipeline, named.status) == (pipeline, "completed"):
        return named
    count = 5 if run else 1
    done = read_records(
        project, lambda: records.newest_ids(project, pipeline, "completed", count)
    )
    if done and not run:
        return done[-1]
    if done:
        latest_ids = ", ".join(r.id for r in done)
        raise UserError(
            f"no completed run {run!r} of {pipeline}. The latest: {latest_ids}."
        )
    raise UserError(f"{pipeline} has no completed run; `curvote run {pipeline}` first.")


def earlier_run(project: Project, pipeline: str, count: int) -> RunRecord:
    """Return the completed run ``count`` before the latest; UserError: none."""
    steps_back = min(count, _MAX_RUNS_BACK)
    wanted = pipeline, "completed", steps_back + 1
    done = read_records(project, lambda: records.newest_ids(project, *wanted))
    if len(done) > steps_back:
        return done[0]
    if not done:
        return completed_run(project, pipeline)  # says what there is not
    raise UserError(
        f"{pipeline} has {len(done)} completed runs: {pipeline}~{len(done) - 1} is the"
        f" first; `curvote runs {pipeline}` lists them."
    )


def unlogged_runs(project: Project) -> list[RunRecord]:
    """Return the completed runs that MLflow does not have, oldest first."""
    return read_records(project, lambda: records.unlogged_ids(project))


def _from_content(content: dict[str, Any]) -> RunRecord:
    return RunRecord(**{field.name: content[field.name] for field in fields(RunRecord)})
