"""Systems of public records: alone, joined with reports, and for coordinates only."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from curvote.base.errors import Problem
from curvote.chain.axis import EPSILON, REPLICATE, PipelineSettings
from curvote.chain.settings import Epsilons, Strict
from curvote.chain.stage import VECTOR, Stage, Table
from curvote.chain.system import System
from curvote.messages.measures import MISCLASSIFICATION
from curvote.systems.common import checks, declarations, models, settings, study, tables
from curvote.systems.direct import system as direct
from curvote.systems.volunteers.messages import WHITENED_PROTOCOL

_STAGES = "curvote.systems.volunteers.stages"


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
    fields, clients = other.settings.model_fields, values.get("clients")
    count = clients.get("public") if isinstance(clients, Mapping) else None
    return (
        "project" in fields
        and "clients" in fields
        and fields["clients"].annotation is settings.Clients
        and MISCLASSIFICATION in other.metrics
        and other.index == (REPLICATE,)
        and isinstance(count, int)
        and count > 0
        and bool(values.get("mode", "study") == "study")
    )


PUBLISH = Stage(
    "publish",
    f"{_STAGES}:publish",
    inputs=("project",),
    params=declarations.ROLE_PARAMS,
    tables=(RECORDS,),
)
_AGGREGATE = declarations.server_stage(
    "aggregate",
    _STAGES,
    ("publish",),
    tables.CLASSIFIER,
    axes=(),
    libraries=("scikit-learn",),
)
_SCORE = declarations.score_stage(
    f"{_STAGES}:score",
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


SYSTEM = declarations.learning_system(
    "volunteers",
    Settings,
    (PUBLISH, _AGGREGATE, _SCORE),
    "volunteers",
    axes=(),
    x=EPSILON,
    checks=(checks.check_test_clients, check_volunteers),
    implied_settings=declarations.JUDGED_BY_Z,
    final_model=models.decoded_model,
    auto_include=stands_beside,
)


REPORTS_ALONE: Final = Table(
    "reports_alone", tables.CLASSIFIER.columns, unit="classifier"
)
_JOIN = replace(
    direct.AGGREGATE,
    module=f"{_STAGES}:join",
    inputs=("privatize", PUBLISH.name),
    tables=(*direct.AGGREGATE.tables, REPORTS_ALONE),
)
_SCORE_JOIN = replace(direct.SCORE, module=f"{_STAGES}:score_join")
_JOINED = declarations.learning_system(
    direct.JOINED_PROTOCOL,
    direct.Settings,
    (direct.PRIVATIZE, PUBLISH, _JOIN, _SCORE_JOIN),
    "joined mean joint majority",
    releases=(direct.RELEASE,),
    judge_inputs=direct.JUDGE_INPUTS,
    **direct.ARM_FIELDS,
)


NUMBERS: Final = Table("public_numbers", {"z": VECTOR}, side="public", unit="record")
_PUBLISH_NUMBERS = replace(
    PUBLISH,
    name="publish_numbers",
    module=f"{_STAGES}:publish_numbers",
    tables=(NUMBERS,),
)
_PRIVATIZE = declarations.client_stage(
    "privatize",
    f"{_STAGES}:privatize_whitened",
    tables.DIRECTIONS,
    ("project", _PUBLISH_NUMBERS.name),
)


def check_whitening(pipeline: PipelineSettings) -> Iterator[Problem]:
    """Require two volunteers, here, whose records make coordinates."""
    if pipeline.clients.public < 2:
        message = "coordinates are made of volunteers' records, of two at least."
        yield Problem(message, ("clients", "public"))
    if pipeline.intake:
        yield Problem("no volunteer's record is here (intake).", ("protocol",))


_WHITENED = declarations.learning_system(
    WHITENED_PROTOCOL,
    settings.Shared,
    (
        _PUBLISH_NUMBERS,
        _PRIVATIZE,
        declarations.server_stage(
            "aggregate",
            f"{_STAGES}:decode_whitened",
            (_PRIVATIZE.name, _PUBLISH_NUMBERS.name),
            tables.CLASSIFIER,
        ),
        replace(
            direct.SCORE,
            module=f"{_STAGES}:score_whitened",
            params=("epsilon", *declarations.ROLE_PARAMS),
        ),
    ),
    "whitened majority",
    releases=(
        declarations.release_stage(
            _PRIVATIZE,
            "report",
            ("ingest", "project", _PUBLISH_NUMBERS.name),
            ("project.judge",),
        ),
    ),
    judge_inputs=direct.JUDGE_INPUTS,
    checks=(checks.check_test_clients, check_whitening),
    **direct.DECODED,
)

SYSTEMS: Final = (SYSTEM, _JOINED, _WHITENED)
