"""`direct` in one round as data: reports, then their mean.

Arms ``mean`` and ``joint``; `direct_two` is the arm ``two``.
"""

from __future__ import annotations

from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.auto import choosing
from curvote.protocols.direct.messages import MESSAGES
from curvote.protocols.direct.methods import JOINT, MEAN
from curvote.protocols.direct.settings import Settings
from curvote.protocols.direct.tables import CLASSIFIER, DIRECTIONS
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import (
    COMMON,
    ROLES,
    SECTIONS,
    WHO,
    drawn,
    released,
    scored,
)

_HERE = "curvote.protocols.direct"
AXES = ("epsilon",)
TERMS = ("epsilon", "direct.arm", "direct.intercept")
FIXED = {"project.judge": "rescaled"}  # it learns from z

PRIVATIZE = drawn(
    "privatize",
    f"{_HERE}.privatize",
    DIRECTIONS,
    inputs=("project",),
    axes=AXES,
    params=(*TERMS, *ROLES),
)
RELEASE = released(
    "privatize",
    "report",
    DIRECTIONS,
    inputs=("ingest", "project"),
    axes=AXES,
    params=(*TERMS, "protocol", "project.judge", *WHO),
)
AGGREGATE = Stage(
    "aggregate",
    f"{_HERE}.aggregate",
    inputs=("privatize",),
    axes=AXES,
    params=("replicates",),
    tables=(CLASSIFIER,),
    side="server",
)
SCORE = scored(
    f"{_HERE}.score",
    ("project", "aggregate"),
    axes=AXES,
    params=("epsilon", "direct.arm", *ROLES),
)


SYSTEM = System(
    name="direct",
    settings=Settings,
    stages=(*COMMON, PRIVATIZE, AGGREGATE, SCORE),
    production=(*COMMON, RELEASE, AGGREGATE),
    messages=MESSAGES,
    compared=(Compared().words,),
    metrics=ERRORS,
    methods=(MEAN, JOINT, MAJORITY),
    main=("mean", "joint"),
    checks=checks.every(checks.tested, choosing.checks),
    parts=choosing.parts,
    short=("arm", "intercept"),
    fixed=FIXED,
    final=finals.one,
    outcome=outcomes.reported,
    sections=SECTIONS,
)
