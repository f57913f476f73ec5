"""System `volunteers`: public records, and one regression on them.

It stands beside every study that sets volunteers aside, without being asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import EPSILON
from curvote.chain.axis import PipelineSettings as Given
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.errors import Problem
from curvote.protocols import checks, finals
from curvote.protocols.by_class import CONFUSION
from curvote.protocols.direct.system import JUDGED_BY_Z
from curvote.protocols.direct.tables import CLASSIFIER
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    ROLE_PARAMS,
    SECTIONS,
    score_stage,
    server_stage,
)
from curvote.protocols.volunteers.methods import VOLUNTEERS
from curvote.protocols.volunteers.settings import Settings
from curvote.protocols.volunteers.tables import RECORDS
from curvote.protocols.volunteers.unasked import stands_beside

_HERE = "curvote.protocols.volunteers"
PUBLISH = Stage(
    "publish",
    f"{_HERE}.publish",
    inputs=("project",),
    params=ROLE_PARAMS,
    tables=(RECORDS,),
)
_AGGREGATE = server_stage(
    "aggregate",
    f"{_HERE}.aggregate",
    ("publish",),
    CLASSIFIER,
    axes=(),
    libraries=("scikit-learn",),
)
_SCORE = score_stage(
    f"{_HERE}.score",
    ("project", "aggregate"),
    axes=(),
    params=ROLE_PARAMS,
    beside=(CONFUSION,),
)


def check_volunteers(pipeline: Given) -> Iterator[Problem]:
    """Require at least one volunteer."""
    if not pipeline.clients.public:
        message = "nobody volunteers: their labelled records are all there is."
        yield Problem(message, ("clients", "public"))


SYSTEM = System(
    name="volunteers",
    settings=Settings,
    stages=(*COMMON_STAGES, PUBLISH, _AGGREGATE, _SCORE),
    axes=(),
    x=EPSILON,
    metrics=ERRORS,
    methods=(VOLUNTEERS,),
    main=("volunteers",),
    checks=checks.combine_checks(
        checks.check_test_clients, check_volunteers, classes=checks.check_many_classes
    ),
    implied_settings=JUDGED_BY_Z,
    final_model=finals.decoded_model,
    sections=SECTIONS,
    auto_include=stands_beside,
)
