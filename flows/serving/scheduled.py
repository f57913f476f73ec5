"""What `curvote serve` runs: a pipeline as its file has it, nothing else."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from traceback import format_tb
from typing import Any, TypeVar

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from curvote.errors import InternalError, UserError
from curvote.flows.chain import RUNNER, Asked, perform, reason
from curvote.flows.environment import (
    RUNNER_PID,
    SERVED,
    is_alive,
    no_idle_workers,
    process_tag,
)
from curvote.flows.notices import notify, notify_again
from curvote.flows.output import lines
from curvote.flows.retention import sweep
from curvote.flows.tracking import log as tracking
from curvote.run import history, records
from curvote.run.config.file import PipelinesFile
from curvote.run.config.schema import Schedule
from curvote.run.history import RunRecord
from curvote.run.project import Project, find_project

T = TypeVar("T")
_ENDED_BADLY = ("failed", "interrupted", "killed")
_ENDED_WELL = ("completed",)


def _ended(flow: Any, flow_run: Any, state: Any) -> None:
    """Tell of a run whose process was ended from outside; its runner sees that."""
    if os.environ.get(RUNNER_PID) != str(os.getpid()):
        return  # the run itself, told to end
    given = flow_run.parameters
    pipeline, place = (
        str(given.get("pipeline")),
        Project(Path(str(given.get("project")))),
    )
    if not _is_ours(place, pipeline):
        return
    begun = records.newest(place, pipeline, "running")
    bad = _bad(place, pipeline)
    history.end_killed(place, is_alive)
    killed = [r for r in history.loaded(place, lambda: begun) if r.status == "killed"]
    ended = _said(killed[0]) if killed else "killed before its run began"
    facts = {"run": killed[0].id} if killed else {}
    text = f"{ended} ({state.message}); the next run goes on from what is stored"
    lines.say(text, "error", pipeline=pipeline, **facts)
    now = _bad(place, pipeline)
    notify_again(place, "failed", pipeline, bad, max(now, bad + 1), **facts)


@flow(
    name="scheduled",
    flow_run_name="{pipeline}",
    task_runner=RUNNER,
    on_crashed=[_ended],
)
def scheduled(pipeline: str, project: str) -> State[None]:
    """Run one pipeline of the served project that carries a schedule, as it stands.

    Whoever may use the server names a pipeline and no more: no override, no release
    anew, no other project. Returns how it ended, for Prefect's page: in the words of
    the run record, which hold no value of anybody's.
    """
    place = Project(Path(project))
    with lines.about(pipeline=pipeline), no_idle_workers():
        known = records.newest(place, pipeline) if _is_served(place) else []
        bad = _bad(place, pipeline) if _is_served(place) else 0
        try:
            record = _done(place, pipeline)
        except Exception as error:  # noqa: BLE001 - said, in its record's words
            return _failed(place, pipeline, error, known, bad)
        text = _said(record)
        lines.say(text, run=record.id)
        if record.status == "blocked":
            get_run_logger().warning(text)
            return Completed(name="Blocked", message=text)
        return Completed(message=text)


def _done(project: Project, pipeline: str) -> RunRecord:
    """Run as often as the schedule says; return the record of the run that ended well.

    UserError: another project, or no schedule.
    """
    if not _is_served(project):
        served = os.environ.get(SERVED)
        raise UserError(f"{str(project.root)!r} is not served here; {served} is.")
    bad = _bad(project, pipeline)
    schedule = _schedule(project, pipeline)
    run_id = _tried(schedule, lambda: _performed(project, pipeline))
    record = history.load(project, run_id)
    if record is None:
        raise InternalError(f"the record of run {run_id} is gone")
    if bad and record.status == "completed":
        notify(project, "recovered", pipeline, run=run_id, count=bad)
    tracking.repair(project)
    sweep(project)
    return record


def _schedule(project: Project, pipeline: str) -> Schedule:
    file = PipelinesFile(find_project(project.root))
    if pipeline not in file.names():
        raise UserError(f"pipelines.yaml has no pipeline {pipeline!r}.")
    stated = _recorded(project, pipeline, lambda: file.configured(pipeline).pipeline)
    if stated.schedule is None:
        raise UserError("it carries no schedule in pipelines.yaml, so nothing runs it.")
    return stated.schedule


def _tried(schedule: Schedule, once: Callable[[], str]) -> str:
    """Run once, and again after a failure as often as the schedule says."""
    for left in range(schedule.retries, 0, -1):
        try:
            return once()
        except Exception as error:  # noqa: BLE001 - the last try's goes on
            wait = f"{schedule.retry_delay:g} s ({left} left)"
            lines.say(f"failed: {reason(error)}; again in {wait}", "warning")
            time.sleep(schedule.retry_delay)
    return once()


def _performed(project: Project, pipeline: str) -> str:
    return _recorded(
        project, pipeline, lambda: perform(pipeline, str(project.root), Asked())
    )


def _recorded(project: Project, pipeline: str, do: Callable[[], T]) -> T:
    """Do it; what fails before a run is on record is put there, too."""
    known = records.newest(project, pipeline)
    try:
        return do()
    except Exception as error:
        if records.newest(project, pipeline) == known:
            history.refused(project, pipeline, reason(error), process_tag())
        raise


def _failed(
    project: Project, pipeline: str, error: Exception, known: list[str], bad: int
) -> State[None]:
    """Say why, once in each place.

    ``known`` is the run before, if there was one, ``bad`` how many had failed in a row.
    """
    facts = {}
    text = f"failed: {reason(error)}"
    if _is_served(project):
        (run,) = records.newest(project, pipeline) or [""]
        facts = {"run": run} if run and [run] != known else {}
        text = f"run {run}: {text}" if facts else text
    lines.say(text, "error", **facts)
    frames = "" if isinstance(error, UserError) else f"\n{_frames(error)}"
    get_run_logger().error("%s%s", text, frames)
    logging.disable()  # Prefect would say it again
    if _is_ours(project, pipeline):
        now = max(_bad(project, pipeline), bad + 1)
        notify_again(project, "failed", pipeline, bad, now, **facts)
    return Failed(message=text)


def _frames(error: BaseException) -> str:
    """Return the lines of code that an error went through: no word of its own."""
    cause = error.__cause__
    first = f"{_frames(cause)}" if cause else ""
    return first + "".join(format_tb(error.__traceback__))


def _said(record: RunRecord) -> str:
    """Return how a run ended, in the words that `curvote status` has for it."""
    ended = f"run {record.id}: {record.status}"
    return f"{ended}: {record.why}" if record.why else ended


def _bad(project: Project, pipeline: str) -> int:
    """Return how often a pipeline has failed or been killed since its last success."""
    return records.in_a_row(project, pipeline, _ENDED_BADLY, _ENDED_WELL)


def _is_served(project: Project) -> bool:
    """Say whether it is the one that is served: no other has a say."""
    return str(project.root) == os.environ.get(SERVED)


def _is_ours(project: Project, pipeline: str) -> bool:
    """Say whether it is a pipeline of what is served.

    Whoever may start a run writes a name as they like: a notice carries no such words.
    """
    if not _is_served(project):
        return False
    with suppress(UserError):
        if pipeline in PipelinesFile(project).names():
            return True
    return pipeline in records.pipelines(project)  # no file can be read just now
