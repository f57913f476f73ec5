"""The one flow: every step of a plan in its order, then the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from curvote.errors import UserError
from curvote.flows.answering.answer import ask
from curvote.flows.environment import is_alive, process_tag
from curvote.flows.notices import notify_again
from curvote.flows.output import lines
from curvote.flows.output.display import (
    display,
    tell_choices,
    tell_own,
    tell_published,
    tell_raw,
    tell_spending,
)
from curvote.flows.server.flow_runs import mark_alive
from curvote.reproduce.lookup import file_of
from curvote.run import history, records
from curvote.run.config.file import PipelinesFile
from curvote.run.engines import Engine, engine_of
from curvote.run.history import RunRecord
from curvote.run.planner import Plan, Selection, make_plan
from curvote.run.project import Project, find_project
from curvote.run.release.publishing import publish
from curvote.tasks.context import Context
from curvote.tasks.page import page
from curvote.tasks.stages import task_of
from curvote.tasks.unsaid import UnsaidError, unsaid

# One task at a time: a stage is already parallel inside (--workers).
RUNNER = cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner(max_workers=1))


@dataclass(frozen=True)
class Asked:
    """What the user asked for beside the pipeline.

    ``engine`` or ``workers`` None: what `runtime` of the project says. ``ask`` asks
    somebody before the first release about their people.
    """

    overrides: Sequence[str] = ()
    replicates: int | None = None
    seed: int | None = None
    only: str | None = None
    start: str | None = None
    force: Sequence[str] = ()
    new_release: bool = False
    new_people: bool = False
    engine: str | None = None
    workers: int | None = None
    block: int | None = None
    ask: bool = False


@flow(
    name="curvote",
    flow_run_name="{pipeline}",
    task_runner=RUNNER,
    validate_parameters=False,
)
def chain(pipeline: str, project: str, **asked: Any) -> str:
    """Run one pipeline as `Asked` says and return the id of its run record."""
    return perform(pipeline, project, Asked(**asked))


def perform(pipeline: str, project: str, asked: Asked) -> str:
    """Do, inside a flow, what was asked; return the id of the run record."""
    mark_alive()
    place = find_project(Path(project))
    history.end_killed(place, is_alive)
    with unsaid():
        file = file_of(place, pipeline)
        plan = _plan(place, pipeline, asked, file)
        with file.placing(pipeline), lines.about(pipeline=pipeline):
            record = _recorded(place, plan, asked)
    return record.id


def _plan(project: Project, pipeline: str, asked: Asked, file: PipelinesFile) -> Plan:
    configured = file.configured(
        pipeline, asked.overrides, replicates=asked.replicates, seed=asked.seed
    )
    with file.placing(pipeline):
        return make_plan(
            project,
            configured,
            Selection(asked.only, asked.start, tuple(asked.force)),
            fetch=True,
            new_release=asked.new_release,
            new_people=asked.new_people,
        )


def _recorded(project: Project, plan: Plan, asked: Asked) -> RunRecord:
    """Do the plan; whatever happens, the record says how it ended."""
    tell_raw(plan)
    tell_own(project, plan)
    tell_choices(plan)
    if tell_spending(project, plan) and asked.ask:
        ask("Is it released about these people, for the first time?", yes=False)
    record = history.begin(project, plan.configured, plan.steps, process_tag())
    history.hold(project, record.id)
    status, why = "interrupted", ""  # Ctrl-C, or Prefect's own way to end a process
    try:
        with lines.about(run=record.id):
            _do(project, plan, record, asked)
        status, why = _outcome(project, plan)
    except Exception as error:
        status, why = "failed", reason(error)
        raise
    finally:
        history.finish(project, record, status, why)
    if status == "blocked":
        other = ("completed", "partial", "failed", "interrupted", "killed")
        now = records.in_a_row(project, record.pipeline, ["blocked"], other)
        about, before = record.pipeline, now - 1
        notify_again(project, "blocked", about, before, now, run=record.id)
    return record


def reason(error: Exception) -> str:
    """Return why a run failed, as its record keeps it: a user's error in its words.

    What it quotes of a file stays out: others may read what is kept.
    """
    if isinstance(error, UserError):
        return str(error.for_records())
    return str(error) if isinstance(error, UnsaidError) else type(error).__name__


def _do(project: Project, plan: Plan, record: RunRecord, asked: Asked) -> None:
    """Submit every step and wait for it, then draw the report of a whole run."""
    with display(plan) as show, _engine(project, asked) as engine:
        context = Context(project, engine, asked.block, show)
        for future in list(_submitted(plan, context)):
            future.result()
        if plan.complete and not plan.blocked():
            page.submit(context, record).result()


def _engine(project: Project, asked: Asked) -> Engine:
    runtime = PipelinesFile(project).runtime()
    return engine_of(project, runtime, asked.engine, asked.workers)


def _submitted(plan: Plan, context: Context) -> Iterator[PrefectFuture[Any]]:
    """Submit each step, to start after its inputs; a blocked one is left out.

    It also starts after the step that makes what it shares with another cell.
    """
    futures: dict[tuple[str, str], PrefectFuture[Any]] = {}
    for step in plan.steps:
        if step.action == "blocked":
            continue
        needed = (*step.sources.values(), step.id)
        before = [futures[i] for i in needed if i in futures]
        made = task_of(step.stage).submit(context, step, wait_for=before)
        futures[step.id] = made
        yield made


def _outcome(project: Project, plan: Plan) -> tuple[str, str]:
    """Return how the run ended, and why; first publish what open rounds wait for."""
    tell_published(publish(project, plan.configured, plan.steps))
    if not plan.blocked():
        return ("completed" if plan.complete else "partial"), ""
    why = plan.blocked()[0].reason
    print(f"blocked ({why})", flush=True)
    return "blocked", why
