"""Declarations: stages of all systems, and short forms of other stages and systems."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from curvote.base.errors import InternalError
from curvote.chain.axis import PipelineSettings
from curvote.chain.measure import SCORES
from curvote.chain.stage import Stage, Table
from curvote.chain.system import System
from curvote.data.lookup import resolve_source
from curvote.messages.measures import ERRORS, methods_named
from curvote.messages.message import messages_of
from curvote.systems.common import checks as shared_checks
from curvote.systems.common.judgement import JUDGEMENTS
from curvote.systems.common.models import judge_outcome
from curvote.systems.common.tables import BASIS_ROWS, CLIENTS, CONSTANTS, ENCODED

Names = tuple[str, ...]
# Who plays which role, in production and in a study.
_ROLE_PARAMS = ("clients", "source.groups", "seed")
ROLE_PARAMS = (*_ROLE_PARAMS, "replicates")
# The cells of most stages: one for each epsilon.
EPSILON_AXES = ("epsilon",)
JUDGED_BY_Z = {"project.judge": "rescaled"}  # what learns from z
LEARNERS = ("curvote.learning.learners.registry:LEARNERS", "learner.name")
MECHANISMS = ("curvote.mechanisms.registry:MECHANISMS", "privatize.mechanism")

_SIMULATION_PARAMS = ("seed", "replicates")
_CONSTANT_PARAMS = {
    "tanh": ("project.centre", "project.scale"),
    "standard": ("project.centre", "project.scale"),
    "min_max": ("project.lower", "project.upper", "project.bounds"),
}


def _simulation_params(settings: PipelineSettings) -> tuple[str, ...]:
    dataset, parameters = resolve_source(settings.source)
    if not dataset.SIMULATED:
        return ()
    # How many are drawn, the source says itself, or who plays which role.
    has_size = dataset.size(parameters) is not None
    return _SIMULATION_PARAMS if has_size else ("clients", *_SIMULATION_PARAMS)


def _constants_read(settings: PipelineSettings) -> tuple[str, ...]:
    project = settings.project
    volunteers = ROLE_PARAMS if project.volunteers else ()
    noise = ("project.noise",) if project.noise is not None else ()
    derivative = ("project.derivative",) if project.derivative else ()
    constants = _CONSTANT_PARAMS.get(project.rescale, ())
    return (*constants, *volunteers, *noise, *derivative)


# Who names the servers of a source, beside its records.
DATASETS = ("curvote.data.registry:DATASETS", "source.name")

INGEST = Stage(
    "ingest",
    "curvote.messages.stages:ingest",
    params=("source",),
    plugins=(DATASETS,),
    tables=(CLIENTS,),
    also=_simulation_params,
    libraries=("pandas", "pyarrow"),
    raw=True,
)
PROJECT = Stage(
    "project",
    "curvote.systems.common.projection:project",
    inputs=("ingest",),
    params=(
        "project.basis",
        "project.size",
        "project.order",
        "project.coordinates",
        "project.rescale",
    ),
    tables=(ENCODED, CONSTANTS, BASIS_ROWS),
    also=_constants_read,
    libraries=("scikit-fda",),
)
COMMON_STAGES = (INGEST, PROJECT)

_PAGE = "curvote.systems.common.page"
# What a page shows of clients who reduce curves to numbers and play roles; of votes on
# classifiers; and of a cutoff.
DATA_SET = f"{_PAGE}.curves:gather_data_set"
SECTIONS = (
    f"{_PAGE}.utilities:gather_by_class",
    f"{_PAGE}.curves:gather_curves",
    DATA_SET,
    "curvote.systems.volunteers.page:gather_volunteers",
    f"{_PAGE}.curves:gather_clients",
)
UTILITIES = f"{_PAGE}.utilities:gather_utilities"
NONE_PASSED = f"{_PAGE}.utilities:gather_none_passed"


def client_stage(
    name: str,
    place: str,
    table: Table,
    inputs: Names = ("project",),
    *,
    axes: Names = EPSILON_AXES,
    params: Names = (),
    **options: Any,
) -> Stage:
    """Return a study's stage in which clients draw messages.

    It reads epsilon and who plays which role beside ``params``. Its function has its
    name where ``place`` is a module alone, as that of a server's stage has.
    """
    read, side = ("epsilon", *ROLE_PARAMS, *params), "client -> server"
    return Stage(
        name,
        _function_place(place, name),
        inputs,
        axes,
        read,
        tables=(table,),
        side=side,
        **options,
    )


def _function_place(place: str, name: str) -> str:
    return place if ":" in place else f"{place}:{name}"


def release_stage(
    stage: Stage, message: str, inputs: Names, params: Names = (), **options: Any
) -> Stage:
    """Return the production stage of a study stage: its message leaves clients.

    It reads epsilon, protocol and who plays which role beside ``params``.
    """
    return replace(
        stage,
        module="curvote.messages.stages:release",
        inputs=inputs,
        params=("epsilon", "protocol", *_ROLE_PARAMS, *params),
        message=message,
        collected="curvote.messages.stages:collect",
        **options,
    )


# What judges say of the classifier that a system released.
JUDGE = release_stage(client_stage("judge", "", JUDGEMENTS), "judgement", ("ingest",))


def server_stage(
    name: str,
    place: str,
    inputs: Names,
    *tables: Table,
    axes: Names = EPSILON_AXES,
    params: Names = (),
    **options: Any,
) -> Stage:
    """Return a stage in which the server computes on what it was sent."""
    read = (*params, "replicates")
    options = {"side": "server"} | options
    return Stage(
        name, _function_place(place, name), inputs, axes, read, tables=tables, **options
    )


def score_stage(
    place: str,
    inputs: Names,
    axes: Names = EPSILON_AXES,
    params: Names = (),
    beside: tuple[Table, ...] = (),
    **options: Any,
) -> Stage:
    """Return the last stage of a study: scores by true labels.

    It makes the table ``scores``, and others ``beside`` it.
    """
    tables, side = (SCORES, *beside), "client (study)"
    return Stage(
        "report", place, inputs, axes, params, tables=tables, side=side, **options
    )


def learning_system(
    name: str,
    settings: type[BaseModel],
    stages: Sequence[Stage],
    methods: str,
    *,
    releases: Sequence[Stage] = (),
    judge_inputs: Names = (),
    checks: Sequence[shared_checks.Check] = (shared_checks.check_test_clients,),
    classes: shared_checks.Check = shared_checks.check_many_classes,
    **fields: Any,
) -> System:
    """Return a system whose server learns classifiers of what clients send.

    Its own ``stages`` stand behind those of all systems, its own ``checks`` behind
    theirs and that of the number of ``classes``. ``methods`` are names, of which the
    first is the main one. Where it can release, ``releases`` are the stages with which
    messages leave clients, in the place of those of the same names; what only a study
    knows is left out. A message that is not among them is an InternalError. Where
    clients can be kept as judges, ``judge_inputs`` are the stages that they are asked
    by: one that states a task, and those that make the classifier.
    """
    in_production = {stage.name: stage for stage in releases}
    measured = methods_named(methods)
    all_stages = (*COMMON_STAGES, *stages)
    production = [
        in_production.get(stage.name, stage)
        for stage in all_stages
        if releases and stage.side != "client (study)"
    ]
    for stage in production:
        if stage.side == "client -> server" and not stage.message:
            raise InternalError(f"{name}: stage {stage.name} has no release")
    if judge_inputs:
        inner = fields.get("production_metrics", lambda _: {})
        fields["production_metrics"] = partial(judge_outcome, inner)
        inputs, axes = ("ingest", *judge_inputs), production[-1].axes
        fields["judging"] = (replace(JUDGE, inputs=inputs, axes=axes),)
    usual_fields: dict[str, Any] = {
        "messages": messages_of(name),
        "metrics": ERRORS,
        "methods": measured,
        "main": (measured[0].name,),
        "checks": shared_checks.combine_checks(*checks, classes=classes),
        "sections": SECTIONS,
    }
    return System(
        name, settings, all_stages, tuple(production), **(usual_fields | fields)
    )
