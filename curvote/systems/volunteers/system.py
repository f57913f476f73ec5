"""System `volunteers`: public records, and one regression on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from curvote.base.errors import Problem
from curvote.chain.axis import EPSILON, REPLICATE, PipelineSettings
from curvote.chain.settings import Epsilons, Strict
from curvote.chain.stage import VECTOR, Stage, Table
from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MISCLASSIFICATION, VOLUNTEERS
from curvote.systems.common import checks, declarations, models
from curvote.systems.common.settings import Clients, Representation
from curvote.systems.common.study import CONFUSION
from curvote.systems.common.tables import CLASSIFIER
from curvote.systems.direct.system import JUDGED_BY_Z


class Settings(Strict):
    """Settings of learning from volunteers' records alone."""

    clients: Clients
    project: Representation
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
    return clients is not None and clients.annotation is Clients


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
    CLASSIFIER,
    axes=(),
    libraries=("scikit-learn",),
)
_SCORE = declarations.score_stage(
    "curvote.systems.volunteers.stages:score",
    ("project", "aggregate"),
    axes=(),
    params=declarations.ROLE_PARAMS,
    beside=(CONFUSION,),
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
    implied_settings=JUDGED_BY_Z,
    final_model=models.decoded_model,
    sections=declarations.SECTIONS,
    auto_include=stands_beside,
)
