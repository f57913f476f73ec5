"""The chain: plan, then one task for each step, then the report and MLflow."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from prefect import Task, flow
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from curvote.errors import UserError
from curvote.run import history
from curvote.run.config import Configured, PipelinesFile
from curvote.run.execute import DEFAULT_BLOCK
from curvote.run.plan import Plan, Selection, make_plan
from curvote.run.project import Project
from curvote.run.publishing import publish
from curvote.run.store import ArtifactRef
from flows import tracking
from flows.display import display, tell_blocked, tell_raw
from flows.environment import is_alive, process_tag
from flows.server import mark_alive
from tasks.aggregate import aggregate
from tasks.evaluate import evaluate
from tasks.ingest import ingest
from tasks.page import page
from tasks.perform import Context
from tasks.privatize import privatize
from tasks.project import project as project_curves
from tasks.report import report
from tasks.train import train

TASKS: dict[str, Task[..., Any]] = {
    "ingest": ingest,
    "project": project_curves,
    "privatize": privatize,
    "train": train,
    "evaluate": evaluate,
    "aggregate": aggregate,
    "report": report,
}


# One task at a time: a stage is already parallel inside (--workers).
RUNNER = cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner(max_workers=1))


@flow(
    name="curvote",
    flow_run_name="{pipeline}",
    task_runner=RUNNER,
    validate_parameters=False,
)
def chain(
    pipeline: str,
    project: str,
    overrides: Sequence[str] = (),
    replicates: int | None = None,
    seed: int | None = None,
    only: str | None = None,
    start: str | None = None,
    force: Sequence[str] = (),
    new_release: bool = False,
    workers: int | None = None,
    block: int = DEFAULT_BLOCK,
) -> str:
    """Run one pipeline and return the id of its run record.

    A scheduled run with a user error fails with its message, without a traceback.
    """
    scheduled = mark_alive()
    place = Project(Path(project))
    history.end_killed(place, is_alive)
    try:
        file = PipelinesFile(place)
        configured = file.configured(
            pipeline, overrides, replicates=replicates, seed=seed
        )
        selection = Selection(only, start, tuple(force))
        with file.placing(pipeline):
            plan = make_plan(
                place, configured, selection, fetch=True, new_release=new_release
            )
            return _run(place, configured, plan, workers or os.cpu_count() or 1, block)
    except UserError as error:
        if scheduled:
            print(f"curvote: {pipeline}: {error}", file=sys.stderr, flush=True)
            logging.disable()  # Prefect would say it again, with a traceback
        raise


def _run(
    project: Project, configured: Configured, plan: Plan, workers: int, block: int
) -> str:
    tell_raw(plan)
    record = history.begin(project, configured, plan.steps, process_tag())
    status = "interrupted"  # Ctrl-C, or Prefect's own way to end a process
    try:
        with display(plan) as show:
            context = Context(project, workers, block, show)
            _submit(context, plan)
            if plan.complete and not plan.blocked():
                page.submit(context, record, "page").result()
        status = _status(project, configured, plan)
    except Exception:
        status = "failed"
        raise
    finally:
        record = history.finish(project, record, status)
    tracking.repair(project)
    return record.id


def _status(project: Project, configured: Configured, plan: Plan) -> str:
    """Return how the run ended; a blocked one first publishes what it waits for."""
    if not plan.blocked():
        return "completed" if plan.complete else "partial"
    tell_blocked(plan, publish(project, configured, plan.steps))
    return "blocked"


def _submit(context: Context, plan: Plan) -> list[ArtifactRef]:
    futures: dict[tuple[str, str], PrefectFuture[ArtifactRef]] = {}
    for step in plan.steps:
        if step.action == "blocked":
            continue
        inputs = [futures[i] for i in step.inputs.items() if i in futures]
        task = TASKS[step.stage.name]
        futures[step.id] = task.submit(context, step, step.name, wait_for=inputs)
    return [future.result() for future in futures.values()]
