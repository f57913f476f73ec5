"""Record of a run from its plan to its end, whoever runs the steps.

A flow does (`curvote.flows.chain`). A study of which every step is reused has none to
run: the command line then needs neither a server nor a flow (`reuse_everything`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from curvote.base.errors import UserError
from curvote.flows import display, lines
from curvote.flows.environment import fast_imports, is_alive, process_tag
from curvote.flows.lines import ask_consent
from curvote.flows.notices import notice_alarms, send_repeated_notice
from curvote.papers.registry import file_of
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.release.publication import publish_rounds
from curvote.pipeline.run.planner import Plan, Selection, make_plan
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord
from curvote.tasks.context import RedactedError

Rows = Sequence[Mapping[str, Any]]  # the scores of a run


@dataclass(frozen=True)
class RunRequest:
    """The options of a run beside its pipeline.

    ``engine`` or ``workers`` None: what `runtime` of the project says. With ``ask``
    somebody is asked before the first release about their people.
    """

    overrides: Sequence[str] = ()
    replicates: int | None = None
    seed: int | None = None
    only: Sequence[str] = ()
    start: str | None = None
    force: Sequence[str] = ()
    new_release: bool = False
    new_people: bool = False
    engine: str | None = None
    workers: int | None = None
    block: int | None = None
    ask: bool = False

    def configure(self, file: PipelinesFile, pipeline: str) -> ConfiguredPipeline:
        """Return a pipeline of a file with these options."""
        numbers = {"replicates": self.replicates, "seed": self.seed}
        return file.configure_pipeline(pipeline, self.overrides, **numbers)

    @property
    def selection(self) -> Selection:
        """The stages that are to be computed anew."""
        return Selection(tuple(self.only), self.start, tuple(self.force))


StepRunner = Callable[[Project, Plan, RunRecord, RunRequest], Any]


def run_recorded(
    project: Project, plan: Plan, request: RunRequest, run_steps: StepRunner
) -> RunRecord:
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
            run_steps(project, plan, record, request)
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
        from curvote.flows.tracking.cells import main_number  # pandas

        main_number(project, record)  # and keeps it, for lists of runs
    elif status == "completed":
        notice_alarms(project, record)
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


def reuse_everything(
    project: Project,
    pipeline: str,
    request: RunRequest,
    tell: Callable[[Project, str], Rows | None],
) -> str | None:
    """Record a study's run that reuses every step; None: something is to be done.

    Its page is drawn and MLflow is told as after any other run. Returns the record's
    id. ``tell`` is that of `curvote.flows.chain.perform_run`.
    """
    from curvote.report.page import draw_report

    records.record_killed(project, is_alive)
    file = file_of(project, pipeline)
    configured = request.configure(file, pipeline)
    if configured.pipeline.production or request.new_release or request.new_people:
        return None
    with file.errors_located(pipeline):
        plan = make_plan(project, configured, request.selection)
    if any(step.action != "reuse" for step in plan.steps) or not plan.complete:
        return None

    def draw_page(place: Project, _: Plan, run: RunRecord, __: RunRequest) -> None:
        draw_report(place, run)

    with lines.shared_facts(pipeline=pipeline):
        record = run_recorded(project, plan, request, draw_page)
    rows = tell(project, record.id)
    if find_spec("mlflow"):
        with fast_imports():
            from curvote.flows.tracking.log import log_missing_runs, preload

            preload(project, with_models=False)
        log_missing_runs(project, {record.id: rows} if rows else {})
    return record.id
