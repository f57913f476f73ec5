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
from curvote.run.config.file import PipelinesFile
from curvote.run.project import Project
from flows import lines
from flows.chain import RUNNER, Asked, perform
from flows.environment import RUNNER_PID, SERVED, no_idle_workers
from flows.notices import notify


def _ended(_flow: Any, run: Any, _state: Any) -> None:
    """Tell of a run whose process was ended from outside; its runner sees that."""
    if os.environ.get(RUNNER_PID) != str(os.getpid()):
        return  # the run itself, told to end
    pipeline = str(run.parameters.get("pipeline"))
    text = "the run's process was ended; the next run goes on from what is stored"
    lines.say(text, "error", pipeline=pipeline)
    notify(Project(Path(run.parameters["project"])), "failed", pipeline)


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
    with lines.about(pipeline=pipeline), _told(), no_idle_workers():
        _check(pipeline, project)
        return perform(pipeline, project, Asked())


@contextmanager
def _told() -> Iterator[None]:
    """Let an error end the run with its message; a traceback is for Prefect's log."""
    try:
        yield
    except UserError as error:
        lines.say(f"not done: {error}", "error")
        logging.disable()  # Prefect would say it again, with a traceback
        raise
    except Exception as error:
        log = Path(os.environ["PREFECT_HOME"]) / "runner.log"
        lines.say(f"failed ({type(error).__name__}); see {log}", "error")
        raise


def _check(pipeline: str, project: str) -> None:
    served = os.environ.get(SERVED)
    if project != served:
        raise UserError(f"{project!r} is not served here; {served} is.")
    stated = PipelinesFile(Project(Path(project))).configured(pipeline).pipeline
    if stated.schedule is None:
        raise UserError("it carries no schedule in pipelines.yaml, so nothing runs it.")
