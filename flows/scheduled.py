"""What `curvote serve` runs: a pipeline as its file has it, nothing else."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect import flow

from curvote.errors import UserError
from curvote.run.config.file import PipelinesFile
from curvote.run.project import Project
from flows.chain import RUNNER, Asked, perform
from flows.environment import SERVED, no_idle_workers
from flows.retention import sweep


@flow(name="scheduled", flow_run_name="{pipeline}", task_runner=RUNNER)
def scheduled(pipeline: str, project: str) -> str:
    """Run one pipeline of the served project that carries a schedule, as it stands.

    Whoever may use the server names a pipeline and no more: no override, no release
    anew, no other project. Returns the id of the run record. UserError: another one.
    """
    with _told(pipeline), no_idle_workers():
        _check(pipeline, project)
        run = perform(pipeline, project, Asked())
        sweep(Project(Path(project)))
        return run


@contextmanager
def _told(pipeline: str) -> Iterator[None]:
    """Let a user error end the run with its message, without a traceback."""
    try:
        yield
    except UserError as error:
        print(f"curvote: {pipeline!r}: {error}", file=sys.stderr, flush=True)
        logging.disable()  # Prefect would say it again, with a traceback
        raise


def _check(pipeline: str, project: str) -> None:
    served = os.environ.get(SERVED)
    if project != served:
        raise UserError(f"{project!r} is not served here; {served} is.")
    stated = PipelinesFile(Project(Path(project))).configured(pipeline).pipeline
    if stated.schedule is None:
        raise UserError("it carries no schedule in pipelines.yaml, so nothing runs it.")
