"""Prefect flow of all pipelines: every step of a plan in order, the report, MLflow."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from prefect import Flow, flow, runtime, tags, task
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.states import Completed, Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.utilities.annotations import quote
from pydantic import Field

from curvote.base.errors import UserError
from curvote.chain.lookup import all_systems
from curvote.flows import artifacts, display, environment, lines
from curvote.flows.environment import is_alive
from curvote.flows.notices import (
    failures_noticed,
)
from curvote.flows.recorded_run import RunRequest, run_recorded
from curvote.flows.server.flow_runs import tag_flow_run
from curvote.flows.server.permission import (
    refuse_foreign_overrides,
    refuse_foreign_server,
)
from curvote.flows.tracking.log import log_missing_runs
from curvote.papers.registry import file_of
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project, find_project
from curvote.pipeline.run.engines import choose_engine
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.store import records
from curvote.pipeline.store.records import RunRecord
from curvote.tasks.context import TaskContext, redaction
from curvote.tasks.stages import TASK_OPTIONS, page, stage_task, step_tags

# One task at a time: a stage is already parallel inside (--workers).
TASK_RUNNER = cast(
    "TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner(max_workers=1)
)


@dataclass(frozen=True)
class Choices:
    """The names that a field of Prefect's form offers, found when the form is made."""

    names: Callable[[], Iterable[str]]

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        """Return the field's schema with the names; where none is known, as it is."""
        schema: dict[str, Any] = handler(core)
        with suppress(UserError):
            schema |= {"enum": [*self.names()]}
        return schema


def _all_stages() -> dict[str, None]:
    stages = (stage for system in all_systems() for stage in system.all_stages)
    return dict.fromkeys(stage.name for stage in stages)


# Those of the folder in which the form is made.
PipelineName = Annotated[str, Choices(lambda: PipelinesFile(find_project()).names())]
StageName = Annotated[str, Choices(_all_stages)]


@flow(name="curvote", flow_run_name="{pipeline}", task_runner=TASK_RUNNER)
def chain(
    pipeline: PipelineName,
    project: str | None = None,
    overrides: list[str] = [],  # noqa: B006 - Prefect's form shows it; nobody alters it
    replicates: Annotated[int, Field(ge=1)] | None = None,
    seed: Annotated[int, Field(ge=0)] | None = None,
    only: list[StageName] = [],  # noqa: B006 - the same
    start: StageName | None = None,
    force: list[StageName] = [],  # noqa: B006 - the same
    engine: Literal["local", "threads", "dask"] | None = None,
    workers: Annotated[int, Field(ge=1)] | None = None,
) -> str | State[str]:
    """Run one pipeline of a project: what is unchanged is reused, the rest is computed.

    Returns the id of the run's record; a run that waits for envelopes ends Blocked.

    Args:
        pipeline: The pipeline's name in pipelines.yaml.
        project: The folder with pipelines.yaml. Without it the nearest one counts,
            from the folder in which the run starts upwards.
        overrides: Settings that differ from pipelines.yaml in this run, each written
            as key=value, such as train.size=40. Production takes next to none; a server
            that the project does not name changes neither data set nor code.
        replicates: How many independent repetitions a study has; without it, what
            pipelines.yaml says.
        seed: The seed of a study; without it, what pipelines.yaml says.
        only: The stages to compute anew, and no other; what they read must be there.
        start: The stage from which all is computed anew.
        force: Stages to compute anew within a whole run. A study must come to the same
            bytes again.
        engine: What runs the blocks of a stage; without it, what runtime.engine says.
        workers: How many workers a stage has; without it, what runtime.workers says,
            else one for each processor.
    """
    place = find_project(Path(project) if project else None)
    environment.prepare_environment(place.root)
    options = overrides, replicates, seed, only, start, force
    request = RunRequest(*options, engine=engine, workers=workers)
    try:
        file_of(place, pipeline)  # a notice carries no name that anybody made up
        with failures_noticed(place, pipeline), environment.workers_ended():
            run = perform_run(pipeline, str(place.root), request)
    except UserError as error:
        if not runtime.deployment.id:
            raise
        # No exception, which Prefect would pickle with what it quotes, and print with
        # the lines of code.
        return Failed(message=str(error.for_records()))
    record = records.load_record(place, run)
    if record and record.status == "blocked":
        return Completed(name="Blocked", message=record.why, data=run)
    return run


@task(name="mlflow", **TASK_OPTIONS | {"task_run_name": "mlflow"})
def track(
    project: Project, rows_by_run: Mapping[str, artifacts.Rows]
) -> State[None] | None:
    """Log in MLflow what it lacks; whatever it says, the run's results stand."""
    if log_missing_runs(project, rows_by_run):
        return None
    words = "the results stand, and the next run tries again; the run's output says why"
    return Completed(name="NotLogged", message=words)


def perform_run(
    pipeline: str,
    project: str,
    request: RunRequest,
    tell: Callable[[Project, str], artifacts.Rows | None] | None = None,
) -> str:
    """Plan and run a pipeline inside a flow; return the id of its record.

    ``tell`` is given the project and that id before MLflow is, and may return the
    scores, so that they are read once.
    """
    tag_flow_run()
    place = find_project(Path(project))
    records.record_killed(place, is_alive)
    with redaction():
        file = file_of(place, pipeline)
        refuse_foreign_overrides(place, request.overrides)
        configured = request.configure(file, pipeline)
        refuse_foreign_server(place, configured)
        with file.errors_located(pipeline):
            plan = make_plan(
                place,
                configured,
                request.selection,
                fetch=True,
                new_release=request.new_release,
                new_people=request.new_people,
            )
            with lines.shared_facts(pipeline=pipeline):
                record = run_recorded(place, plan, request, _run_steps)
    rows = tell(place, record.id) if tell else None
    if find_spec("mlflow"):
        track.submit(place, {record.id: rows} if rows else {}).result()
    artifacts.show_results(place, records.load_record(place, record.id) or record, rows)
    return record.id


# What the command line runs: its options are more than those of a form.
command_run = Flow(
    perform_run,
    name="curvote",
    flow_run_name="{pipeline}",
    task_runner=TASK_RUNNER,
    validate_parameters=False,
)


def _run_steps(
    project: Project, plan: Plan, record: RunRecord, request: RunRequest
) -> None:
    """Submit every step and wait for it, then draw the report of a full run."""
    artifacts.show_plan(plan)
    deployed = runtime.deployment.id is not None  # pages that filter by tags
    settings = PipelinesFile(project).runtime()
    engine_of_run = choose_engine(
        project, settings, request.engine, request.workers, tell=lines.write_line
    )
    for line in engine_of_run.describe_places(plan.steps):
        lines.write_line(line)
    with display.show_progress(plan) as show, engine_of_run as engine:
        progress = artifacts.PageProgress(show)
        context = TaskContext(project, engine, request.block, progress)
        # Each starts after its inputs, and after the step that makes what it shares
        # with another cell; blocked ones are left out.
        futures: dict[tuple[str, str], PrefectFuture[Any]] = {}
        submitted = []
        for step in plan.steps:
            if step.action != "blocked":
                needed = (*step.sources.values(), step.id)
                before = [futures[i] for i in needed if i in futures]
                with tags(*step_tags(step, with_cell=deployed)):
                    stage = stage_task(step.stage.name)
                    future = stage.submit(quote(context), quote(step), wait_for=before)
                futures[step.id] = future
                submitted.append(future)
        for future in submitted:
            future.result()
        if plan.complete and not plan.blocked_steps():
            page.submit(context, record).result()
