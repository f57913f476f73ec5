"""Prefect flow of all pipelines: every step of a plan in order, then the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from curvote.base.errors import UserError
from curvote.flows import display, lines
from curvote.flows.environment import is_alive, process_tag
from curvote.flows.lines import ask_consent
from curvote.flows.notices import send_repeated_notice
from curvote.flows.server.flow_runs import tag_flow_run
from curvote.flows.tracking.cells import main_number
from curvote.papers.registry import file_of
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project, find_project
from curvote.pipeline.release.publication import publish_rounds
from curvote.pipeline.run.engines import choose_engine
from curvote.pipeline.run.planner import Plan, Selection, make_plan
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord
from curvote.tasks.context import RedactedError, TaskContext, redaction
from curvote.tasks.stages import page, stage_task

# One task at a time: a stage is already parallel inside (--workers).
TASK_RUNNER = cast(
    "TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner(max_workers=1)
)


@dataclass(frozen=True)
class RunRequest:
    """The options of a run beside its pipeline.

    ``engine`` or ``workers`` None: what `runtime` of the project says. ``ask_consent``
    asks somebody before the first release about their people.
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
    task_runner=TASK_RUNNER,
    validate_parameters=False,
)
def chain(pipeline: str, project: str, **options: Any) -> str:
    """Run one pipeline and return the id of its run record."""
    return perform_run(pipeline, project, RunRequest(**options))


def perform_run(pipeline: str, project: str, request: RunRequest) -> str:
    """Plan and run a pipeline inside a flow; return the id of its record."""
    tag_flow_run()
    place = find_project(Path(project))
    records.record_killed(place, is_alive)
    with redaction():
        file = file_of(place, pipeline)
        configured = file.configure_pipeline(
            pipeline,
            request.overrides,
            replicates=request.replicates,
            seed=request.seed,
        )
        with file.errors_located(pipeline):
            plan = make_plan(
                place,
                configured,
                Selection(request.only, request.start, tuple(request.force)),
                fetch=True,
                new_release=request.new_release,
                new_people=request.new_people,
            )
        with file.errors_located(pipeline), lines.shared_facts(pipeline=pipeline):
            record = _run_recorded(place, plan, request)
    return record.id


def _run_recorded(project: Project, plan: Plan, request: RunRequest) -> RunRecord:
    """Run the plan; whatever happens, the record says how it ended."""
    display.print_raw_files(plan)
    display.print_user_file(project, plan)
    display.print_choices(plan)
    if display.print_spending(project, plan) and request.ask:
        ask_consent(
            "Nothing was released about these people before. Release it now?", yes=False
        )
    record = records.record_start(project, plan.configured, plan.steps, process_tag())
    records.hold_run_lock(project, record.id)
    status, why = "interrupted", ""  # Ctrl-C, or Prefect's own way to end a process
    try:
        with lines.shared_facts(run=record.id):
            _run_steps(project, plan, record, request)
        for opened in publish_rounds(project, plan.configured, plan.steps):
            print(f"published: {opened.task}\ninvitations: {opened.invitations}")
            print(
                f"{opened.waits_for} envelopes are needed (`curvote intake`)",
                flush=True,
            )
        status, why = "completed" if plan.complete else "partial", ""
        if blocked := plan.blocked_steps():
            status, why = "blocked", blocked[0].reason
            print(f"blocked ({why})", flush=True)
    except Exception as error:
        status, why = "failed", failure_reason(error)
        raise
    finally:
        record = records.record_end(project, record, status, why)
    if status == "completed" and not plan.configured.pipeline.production:
        main_number(project, record)  # and keeps it, for lists of runs
    if status == "blocked":
        other = ("completed", "partial", "failed", "interrupted", "killed")
        now = records.count_streak(project, record.pipeline, ["blocked"], other)
        about, before = record.pipeline, now - 1
        send_repeated_notice(project, "blocked", about, before, now, run=record.id)
    return record


def failure_reason(error: Exception) -> str:
    """Return the reason of a failure without private text, for the record.

    What it quotes of a file stays out: others may read what is kept.
    """
    if isinstance(error, UserError):
        return str(error.for_records())
    return str(error) if isinstance(error, RedactedError) else type(error).__name__


def _run_steps(
    project: Project, plan: Plan, record: RunRecord, request: RunRequest
) -> None:
    """Submit every step and wait for it, then draw the report of a full run."""
    runtime = PipelinesFile(project).runtime()
    engine_of_run = choose_engine(project, runtime, request.engine, request.workers)
    with display.show_progress(plan) as show, engine_of_run as engine:
        context = TaskContext(project, engine, request.block, show)
        # Each starts after its inputs, and after the step that makes what it shares
        # with another cell; blocked ones are left out.
        futures: dict[tuple[str, str], PrefectFuture[Any]] = {}
        submitted = []
        for step in plan.steps:
            if step.action != "blocked":
                needed = (*step.sources.values(), step.id)
                before = [futures[i] for i in needed if i in futures]
                future = stage_task(step.stage).submit(context, step, wait_for=before)
                futures[step.id] = future
                submitted.append(future)
        for future in submitted:
            future.result()
        if plan.complete and not plan.blocked_steps():
            page.submit(context, record).result()
