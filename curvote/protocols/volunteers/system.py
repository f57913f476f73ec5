"""Volunteers alone as data: their public records, and one regression on them.

It stands beside every study that sets volunteers aside, without being asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.axis import EPSILON
from curvote.chain.axis import Settings as Given
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.errors import Problem
from curvote.protocols import checks, finals
from curvote.protocols.by_class import CONFUSION
from curvote.protocols.direct.system import FIXED
from curvote.protocols.direct.tables import CLASSIFIER
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import COMMON, ROLES, SECTIONS, scored, served
from curvote.protocols.volunteers.methods import VOLUNTEERS
from curvote.protocols.volunteers.settings import Settings
from curvote.protocols.volunteers.tables import RECORDS
from curvote.protocols.volunteers.unasked import beside

_HERE = "curvote.protocols.volunteers"
PUBLISH = Stage(
    "publish",
    f"{_HERE}.publish",
    inputs=("project",),
    params=ROLES,
    tables=(RECORDS,),
)
_AGGREGATE = served(
    "aggregate",
    f"{_HERE}.aggregate",
    ("publish",),
    CLASSIFIER,
    axes=(),
    libraries=("scikit-learn",),
)
_SCORE = scored(
    f"{_HERE}.score",
    ("project", "aggregate"),
    axes=(),
    params=ROLES,
    beside=(CONFUSION,),
)


def enough(pipeline: Given) -> Iterator[Problem]:
    """Ask for volunteers."""
    if not pipeline.clients.public:
        message = "nobody volunteers: their labelled records are all there is."
        yield Problem(message, ("clients", "public"))


SYSTEM = System(
    name="volunteers",
    settings=Settings,
    stages=(*COMMON, PUBLISH, _AGGREGATE, _SCORE),
    axes=(),
    x=EPSILON,
    metrics=ERRORS,
    methods=(VOLUNTEERS,),
    main=("volunteers",),
    checks=checks.every(checks.tested, enough, classes=checks.many),
    fixed=FIXED,
    final=finals.one,
    sections=SECTIONS,
    unasked=beside,
)
