"""`majority` as data: noised labels, then the class that they elect."""

from __future__ import annotations

from curvote.chain.system import System
from curvote.protocols import checks
from curvote.protocols.majority.final import final, outcome
from curvote.protocols.majority.messages import MESSAGES
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.majority.tables import ELECTED, LABELS
from curvote.protocols.measures import ERRORS
from curvote.protocols.settings import Shared
from curvote.protocols.stages.declared import (
    COMMON,
    ROLES,
    SECTIONS,
    drawn,
    released,
    scored,
    served,
)

_HERE = "curvote.protocols.majority"
_PRIVATIZE = drawn("privatize", f"{_HERE}.privatize", LABELS)
_AGGREGATE = served(
    "aggregate", f"{_HERE}.aggregate", ("project", "privatize"), ELECTED
)
_RELEASE = released(_PRIVATIZE, "report", ("ingest", "project"), ("project.judge",))
_SCORE = scored(f"{_HERE}.score", ("project",), params=("epsilon", *ROLES))


SYSTEM = System(
    name="majority",
    settings=Shared,
    stages=(*COMMON, _PRIVATIZE, _AGGREGATE, _SCORE),
    production=(*COMMON, _RELEASE, _AGGREGATE),
    messages=MESSAGES,
    metrics=ERRORS,
    methods=(MAJORITY,),
    main=("majority",),
    checks=checks.every(checks.tested, classes=checks.many),
    final=final,
    outcome=outcome,
    sections=SECTIONS,
)
