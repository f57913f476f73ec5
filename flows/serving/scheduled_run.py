"""Scheduled run of a pipeline as its file states it."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from traceback import format_tb
from typing import Any, TypeVar

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from curvote.base.errors import InternalError, UserError
from curvote.flows import environment, lines
from curvote.flows.chain import TASK_RUNNER, perform_run
from curvote.flows.notices import send_notice, send_repeated_notice
from curvote.flows.recorded_run import RunRequest, failure_reason
from curvote.flows.serving.retention import clear_if_due
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project, find_project
from curvote.pipeline.config.schema import Schedule
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord

T = TypeVar("T")
_ENDED_BADLY = ("failed", "interrupted", "killed")
_ENDED_WELL = ("completed",)


def _on_crash(flow: Any, flow_run: Any, state: Any) -> None:
    """Report a run whose process was ended from outside."""
    if os.environ.get(environment.RUNNER_VARIABLE) != str(os.getpid()):
        return  # the run itself, told to end
    parameters = flow_run.parameters
    pipeline = str(parameters.get("pipeline"))
    place = Project(Path(str(parameters.get("project"))))
    if not _is_served_pipeline(place, pipeline):
        return
    running = records.run_ids(place, pipeline, "running", 1)
    bad = _failure_streak(place, pipeline)
    records.record_killed(place, environment.is_alive)
    dead_runs = records.load_records(place, pipeline, "killed")
    killed = [record for record in dead_runs if record.id in running]
    ended = _describe_end(killed[0]) if killed else "killed before its run began"
    facts = {"run": killed[0].id} if killed else {}
    text = f"{ended} ({state.message}); the next run goes on from what is stored"
    lines.write_line(text, "error", pipeline=pipeline, **facts)
    now = _failure_streak(place, pipeline)
    send_repeated_notice(place, "failed", pipeline, bad, max(now, bad + 1), **facts)


@flow(
    name="scheduled",
    flow_run_name="{pipeline}",
    task_runner=TASK_RUNNER,
    on_crashed=[_on_crash],
)
def scheduled(pipeline: str, project: str) -> State[None]:
    """Run one pipeline of the served project that carries a schedule, as it stands.

    Whoever may use the server names a pipeline and no more: no override, no release
    anew, no other project. Returns how it ended, for Prefect's page: in the words of
    the run record, which hold no value of anybody's.
    """
    place = Project(Path(project))
    with lines.shared_facts(pipeline=pipeline), environment.workers_ended():
        latest_before = _latest_id(place, pipeline) if _is_served(place) else []
        bad = _failure_streak(place, pipeline) if _is_served(place) else 0
        try:
            record = _run_with_retries(place, pipeline)
        except Exception as error:  # noqa: BLE001 - said, in its record's words
            return _report_failure(place, pipeline, error, latest_before, bad)
        text = _describe_end(record)
        lines.write_line(text, run=record.id)
        if record.status == "blocked":
            get_run_logger().warning(text)
            return Completed(name="Blocked", message=text)
        return Completed(message=text)


def _run_with_retries(project: Project, pipeline: str) -> RunRecord:
    """Run as often as the schedule says; return the record of the good run.

    UserError: another project, or no schedule.
    """
    if not _is_served(project):
        served = os.environ.get(environment.SERVED_VARIABLE)
        why = f"is not served here; {served} is." if served else "is no project."
        raise UserError(f"{str(project.root)!r} {why}")
    bad = _failure_streak(project, pipeline)
    file = PipelinesFile(find_project(project.root))
    if pipeline not in file.names():
        raise UserError(f"pipelines.yaml has no pipeline {pipeline!r}.")
    schedule = _with_record(
        project, pipeline, lambda: file.configure_pipeline(pipeline).pipeline.schedule
    )
    if schedule is None:
        raise UserError("it carries no schedule in pipelines.yaml, so nothing runs it.")
    run_id = _try_repeatedly(schedule, partial(_perform_once, project, pipeline))
    record = records.load_record(project, run_id)
    if record is None:
        raise InternalError(f"the record of run {run_id} is gone")
    if bad and record.status == "completed":
        send_notice(project, "recovered", pipeline, run=run_id, count=bad)
    clear_if_due(project)
    return record


def _try_repeatedly(schedule: Schedule, once: Callable[[], str]) -> str:
    """Call ``once``, and again after failures as often as the schedule says."""
    for tries_left in range(schedule.retries, 0, -1):
        try:
            return once()
        except Exception as error:  # noqa: BLE001 - the last try's goes on
            wait = f"{schedule.retry_delay:g} s ({tries_left} left)"
            text = f"failed: {failure_reason(error)}; again in {wait}"
            lines.write_line(text, "warning")
            time.sleep(schedule.retry_delay)
    return once()


def _perform_once(project: Project, pipeline: str) -> str:
    perform = partial(perform_run, pipeline, str(project.root), RunRequest())
    return _with_record(project, pipeline, perform)


def _with_record(project: Project, pipeline: str, do: Callable[[], T]) -> T:
    """Call ``do``; a failure before a run's record is recorded, too."""
    latest_before = _latest_id(project, pipeline)
    try:
        return do()
    except Exception as error:
        if _latest_id(project, pipeline) == latest_before:
            why = failure_reason(error)
            records.record_refusal(project, pipeline, why, environment.process_tag())
        raise


def _report_failure(
    project: Project,
    pipeline: str,
    error: Exception,
    latest_before: list[str],
    bad: int,
) -> State[None]:
    """Report a failure once in each place.

    ``latest_before`` is the run before, if there was one, ``bad`` how many had failed
    in a row.
    """
    facts = {}
    text = f"failed: {failure_reason(error)}"
    if _is_served(project):
        (run,) = _latest_id(project, pipeline) or [""]
        facts = {"run": run} if run and [run] != latest_before else {}
        text = f"run {run}: {text}" if facts else text
    lines.write_line(text, "error", **facts)
    frames = "" if isinstance(error, UserError) else f"\n{_format_frames(error)}"
    get_run_logger().error("%s%s", text, frames)
    logging.disable()  # Prefect would say it again
    if _is_served_pipeline(project, pipeline):
        now = max(_failure_streak(project, pipeline), bad + 1)
        send_repeated_notice(project, "failed", pipeline, bad, now, **facts)
    return Failed(message=text)


def _latest_id(project: Project, pipeline: str) -> list[str]:
    """Return the id of a pipeline's latest run, if there is one."""
    return records.run_ids(project, pipeline, last=1)


def _format_frames(error: BaseException) -> str:
    """Return the code lines that an error went through, without its message."""
    cause = getattr(error, "original", None) or error.__cause__
    return (_format_frames(cause) if cause else "") + "".join(
        format_tb(error.__traceback__)
    )


def _describe_end(record: RunRecord) -> str:
    """Return how a run ended, as `curvote status` reports it."""
    ended = f"run {record.id}: {record.status}"
    return f"{ended}: {record.why}" if record.why else ended


def _failure_streak(project: Project, pipeline: str) -> int:
    return records.count_streak(project, pipeline, _ENDED_BADLY, _ENDED_WELL)


def _is_served(project: Project) -> bool:
    served = os.environ.get(environment.SERVED_VARIABLE)
    if served is None:  # a server that is not `curvote serve`'s orders this run
        return project.pipelines_file.is_file()
    return str(project.root) == served


def _is_served_pipeline(project: Project, pipeline: str) -> bool:
    """Return whether a pipeline belongs to the served project.

    Whoever may start a run writes a name as they like: a notice carries no such words.
    """
    if not _is_served(project):
        return False
    with suppress(UserError):
        if pipeline in PipelinesFile(project).names():
            return True
    return pipeline in records.pipeline_names(project)  # no file can be read just now
