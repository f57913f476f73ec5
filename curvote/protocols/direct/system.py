"""`direct` in one round as data: reports, then their mean.

Arms ``mean`` and ``joint``; `direct_two` is the arm ``two``.
"""

from __future__ import annotations

from curvote.chain.measure import Look, Method
from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.auto import choosing
from curvote.protocols.by_class import CONFUSION
from curvote.protocols.direct.messages import MESSAGES
from curvote.protocols.direct.settings import Settings
from curvote.protocols.direct.tables import CLASSIFIER, DIRECTIONS
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import (
    AXES,
    COMMON,
    ROLES,
    SECTIONS,
    drawn,
    released,
    scored,
    served,
)

_HERE = "curvote.protocols.direct"
TERMS = ("direct.arm", "direct.intercept")
FIXED = {"project.judge": "rescaled"}  # it learns from z

PRIVATIZE = drawn("privatize", f"{_HERE}.privatize", DIRECTIONS, params=TERMS)
RELEASE = released(
    PRIVATIZE, "report", ("ingest", "project"), (*TERMS, "project.judge")
)
AGGREGATE = served(
    "aggregate",
    f"{_HERE}.aggregate",
    ("privatize",),
    CLASSIFIER,
    params=("direct.gate",),
)
SCORE = scored(
    f"{_HERE}.score",
    ("project", "aggregate"),
    AXES,
    ("epsilon", "direct.arm", *ROLES),
    beside=(CONFUSION,),
)

_MEAN = Method(
    "mean",
    "direct, mean",
    "Every client reports one noised direction, label times record; the mean of "
    "all is the classifier.",
    Look("#d55e00", "o", width=2.6, size=6.5, above=6),
    rank=90,
)
_JOINT = Method(
    "joint",
    "direct, joint",
    "The same, but a part of each report tells the second moment, which corrects "
    "the mean.",
    Look("#d55e00", "h", width=2.6, size=6.5, above=6),
    rank=100,
)


SYSTEM = System(
    name="direct",
    settings=Settings,
    stages=(*COMMON, PRIVATIZE, AGGREGATE, SCORE),
    production=(*COMMON, RELEASE, AGGREGATE),
    messages=MESSAGES,
    compared=(Compared().words,),
    metrics=ERRORS,
    methods=(_MEAN, _JOINT, MAJORITY),
    main=("mean", "joint"),
    checks=checks.every(checks.tested, choosing.checks, classes=checks.many),
    parts=choosing.parts,
    short=("arm", "intercept"),
    fixed=FIXED,
    final=finals.one,
    outcome=outcomes.reported,
    sections=SECTIONS,
)
