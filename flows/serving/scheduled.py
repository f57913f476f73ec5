"""What `curvote serve` runs: a pipeline as its file has it, nothing else."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger

from curvote.errors import UserError
from curvote.flows.chain import RUNNER, Asked, perform, reason
from curvote.flows.environment import (
    RUNNER_PID,
    SERVED,
    no_idle_workers,
    process_tag,
)
from curvote.flows.notices import notify
from curvote.flows.output import lines
from curvote.flows.retention import sweep
from curvote.flows.tracking import log as tracking
from curvote.run import history, records
from curvote.run.config.file import PipelinesFile
from curvote.run.config.runtime import Event
from curvote.run.config.schema import Schedule
from curvote.run.project import Project, find_project

_ENDED_BADLY = ("failed", "interrupted", "killed")


def _ended(flow: Any, flow_run: Any, state: Any) -> None:
    """Tell of a run whose process was ended from outside; its runner sees that."""
    if os.environ.get(RUNNER_PID) != str(os.getpid()):
        return  # the run itself, told to end
    pipeline = str(flow_run.parameters.get("pipeline"))
    why = str(state.message).partition(";")[0].strip().rstrip(".")
    text = f"ended before its time ({why}); the next run goes on from what is stored"
    lines.say(text, "error", pipeline=pipeline)
    _notify(pipeline, str(flow_run.parameters.get("project")))


@flow(
    name="scheduled",
    flow_run_name="{pipeline}",
    task_runner=RUNNER,
    on_crashed=[_ended],
)
def scheduled(pipeline: str, project: str) -> str:
    """Run one pipeline of the served project that carries a schedule, as it stands.

    Whoever may use the server names a pipeline and no more: no override, no release
    anew, no other project. Returns the id of the run record. UserError: another one.
    """
    place = Project(Path(project))
    with lines.about(pipeline=pipeline), _told(pipeline, project), no_idle_workers():
        schedule = _checked(pipeline, project)
        before = history.latest(place, pipeline)
        run_id = _tried(schedule, lambda: _recorded(place, pipeline))
        record = history.load(place, run_id)
        lines.say(f"run {run_id}: {record.status if record else 'gone'}", run=run_id)
        _tell_recovered(place, pipeline, before)
        tracking.repair(place)
        sweep(place)
        return run_id


def _tried(schedule: Schedule, once: Callable[[], str]) -> str:
    """Run once, and again after a failure as often as the schedule says."""
    for left in range(schedule.retries, 0, -1):
        try:
            return once()
        except Exception as error:  # noqa: BLE001 - the last try's goes on
            wait = f"{schedule.retry_delay:g} s ({left} left)"
            lines.say(f"not done: {reason(error)}; again in {wait}", "warning")
            time.sleep(schedule.retry_delay)
    return once()


def _recorded(project: Project, pipeline: str) -> str:
    """Run; one that could not even be planned is on record, too."""
    known = records.newest(project, pipeline)
    try:
        return perform(pipeline, str(project.root), Asked())
    except Exception as error:
        if records.newest(project, pipeline) == known:
            history.refused(project, pipeline, reason(error), process_tag())
        raise


@contextmanager
def _told(pipeline: str, project: str) -> Iterator[None]:
    """Let an error end the run with its message; a traceback is for Prefect's log."""
    try:
        yield
    except UserError as error:
        lines.say(f"not done: {error}", "error")
        get_run_logger().error("%s", error)  # for Prefect's page of the run
        logging.disable()  # Prefect would say it again, with a traceback
        _notify(pipeline, project)
        raise
    except Exception as error:
        log = Path(os.environ["PREFECT_HOME"]) / "runner.log"
        lines.say(f"failed ({type(error).__name__}); see {log}", "error")
        _notify(pipeline, project)
        raise


def _tell_recovered(
    project: Project, pipeline: str, before: history.RunRecord | None
) -> None:
    """Tell of the first success after a run that ended badly."""
    now = history.latest(project, pipeline)
    if before and before.status in _ENDED_BADLY and now and now.status == "completed":
        _notify(pipeline, str(project.root), "recovered")


def _notify(pipeline: str, project: str, event: Event = "failed") -> None:
    if project == os.environ.get(SERVED):  # no other project has a say
        notify(Project(Path(project)), event, pipeline)


def _checked(pipeline: str, project: str) -> Schedule:
    served = os.environ.get(SERVED)
    if project != served:
        raise UserError(f"{project!r} is not served here; {served} is.")
    stated = PipelinesFile(find_project(Path(project))).configured(pipeline).pipeline
    if stated.schedule is None:
        raise UserError("it carries no schedule in pipelines.yaml, so nothing runs it.")
    return stated.schedule
