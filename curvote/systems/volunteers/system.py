"""Systems `volunteers`, a regression on public records, and `joined` with reports."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from curvote.base.errors import Problem
from curvote.chain.axis import EPSILON, REPLICATE, PipelineSettings
from curvote.chain.measure import Look, Method
from curvote.chain.settings import Epsilons, Strict
from curvote.chain.stage import VECTOR, Stage, Table
from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MISCLASSIFICATION, VOLUNTEERS
from curvote.systems.common import checks, declarations, models, settings, study, tables
from curvote.systems.direct import system as direct
from curvote.systems.volunteers.messages import MESSAGES_BY_SYSTEM


class Settings(Strict):
    """Settings of learning from volunteers' records alone."""

    clients: settings.Clients
    project: settings.Representation
    epsilon: Epsilons = [1.0]


RECORDS: Final = Table(
    "public_records", {"z": VECTOR, "label": "int64"}, side="public", unit="record"
)


def stands_beside(other: System, values: Mapping[str, Any]) -> bool:
    """Say whether settings of a study of ``other`` set volunteers aside.

    ``values`` may not have been checked yet. It must measure errors of classifiers of
    z, a repetition at a time.
    """
    fields = other.settings.model_fields
    has_clients = "project" in fields and _counts_clients(other)
    is_comparable = MISCLASSIFICATION in other.metrics and other.index == (REPLICATE,)
    return (
        has_clients
        and is_comparable
        and _volunteer_count(values) > 0
        and bool(values.get("mode", "study") == "study")
    )


def _counts_clients(other: System) -> bool:
    clients = other.settings.model_fields.get("clients")
    return clients is not None and clients.annotation is settings.Clients


def _volunteer_count(values: Mapping[str, Any]) -> int:
    clients = values.get("clients")
    count = clients.get("public") if isinstance(clients, Mapping) else None
    return count if isinstance(count, int) else 0


PUBLISH = Stage(
    "publish",
    "curvote.systems.volunteers.stages:publish",
    inputs=("project",),
    params=declarations.ROLE_PARAMS,
    tables=(RECORDS,),
)
_AGGREGATE = declarations.server_stage(
    "aggregate",
    "curvote.systems.volunteers.stages:aggregate",
    ("publish",),
    tables.CLASSIFIER,
    axes=(),
    libraries=("scikit-learn",),
)
_SCORE = declarations.score_stage(
    "curvote.systems.volunteers.stages:score",
    ("project", "aggregate"),
    axes=(),
    params=declarations.ROLE_PARAMS,
    beside=(study.CONFUSION,),
)


def check_volunteers(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Require at least one volunteer."""
    if not pipeline.clients.public:
        message = "nobody volunteers: their labelled records are all there is."
        yield Problem(message, ("clients", "public"))


SYSTEM = System(
    name="volunteers",
    settings=Settings,
    stages=(*declarations.COMMON_STAGES, PUBLISH, _AGGREGATE, _SCORE),
    axes=(),
    x=EPSILON,
    metrics=ERRORS,
    methods=(VOLUNTEERS,),
    main=("volunteers",),
    checks=checks.combine_checks(
        checks.check_test_clients, check_volunteers, classes=checks.check_many_classes
    ),
    implied_settings=direct.JUDGED_BY_Z,
    final_model=models.decoded_model,
    sections=declarations.SECTIONS,
    auto_include=stands_beside,
)


REPORTS_ALONE: Final = Table(
    "reports_alone", tables.CLASSIFIER.columns, unit="classifier"
)


JOINED: Final = Method(
    "joined",
    "joined",
    "The reports of `direct` and the volunteers' public records with their labels, "
    "each weighted by the inverse of its variance.",
    Look("#cc79a7", "p", width=2.6, size=6.5, above=6),
    rank=142,
)


_JOIN = replace(
    direct.AGGREGATE,
    module="curvote.systems.volunteers.stages:join",
    inputs=("privatize", PUBLISH.name),
    tables=(*direct.AGGREGATE.tables, REPORTS_ALONE),
)
_SCORE_JOIN = replace(
    direct.SCORE, module="curvote.systems.volunteers.stages:score_join"
)

_JOINED = replace(
    direct.SYSTEM,
    name=direct.JOINED_PROTOCOL,
    stages=(
        *declarations.COMMON_STAGES,
        direct.PRIVATIZE,
        PUBLISH,
        _JOIN,
        _SCORE_JOIN,
    ),
    production=(*declarations.COMMON_STAGES, direct.RELEASE, PUBLISH, _JOIN),
    messages=MESSAGES_BY_SYSTEM["joined"],
    methods=(JOINED, *direct.SYSTEM.methods),
    main=("joined",),
    shorthand=(),
)

SYSTEMS: Final = (SYSTEM, _JOINED)
