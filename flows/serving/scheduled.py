"""What `curvote serve` runs: a pipeline as its file has it, nothing else."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect import flow

from curvote.errors import UserError
from curvote.flows.chain import RUNNER, Asked, perform
from curvote.flows.environment import RUNNER_PID, SERVED, no_idle_workers
from curvote.flows.notices import notify
from curvote.flows.output import lines
from curvote.flows.retention import sweep
from curvote.flows.tracking import log as tracking
from curvote.run.config.file import PipelinesFile
from curvote.run.history import load
from curvote.run.project import Project


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
    with lines.about(pipeline=pipeline), _told(pipeline, project), no_idle_workers():
        _check(pipeline, project)
        run_id = perform(pipeline, project, Asked())
        record = load(Project(Path(project)), run_id)
        lines.say(f"run {run_id}: {record.status if record else 'gone'}", run=run_id)
        tracking.repair(Project(Path(project)))
        sweep(Project(Path(project)))
        return run_id


@contextmanager
def _told(pipeline: str, project: str) -> Iterator[None]:
    """Let an error end the run with its message; a traceback is for Prefect's log."""
    try:
        yield
    except UserError as error:
        lines.say(f"not done: {error}", "error")
        logging.disable()  # Prefect would say it again, with a traceback
        _notify(pipeline, project)
        raise
    except Exception as error:
        log = Path(os.environ["PREFECT_HOME"]) / "runner.log"
        lines.say(f"failed ({type(error).__name__}); see {log}", "error")
        _notify(pipeline, project)
        raise


def _notify(pipeline: str, project: str) -> None:
    if project == os.environ.get(SERVED):  # no other project has a say
        notify(Project(Path(project)), "failed", pipeline)


def _check(pipeline: str, project: str) -> None:
    served = os.environ.get(SERVED)
    if project != served:
        raise UserError(f"{project!r} is not served here; {served} is.")
    stated = PipelinesFile(Project(Path(project))).configured(pipeline).pipeline
    if stated.schedule is None:
        raise UserError("it carries no schedule in pipelines.yaml, so nothing runs it.")
