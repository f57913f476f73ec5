"""The join as data: reports, public records, then both as one classifier."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.auto import choosing
from curvote.protocols.direct.settings import Settings
from curvote.protocols.direct.system import (
    AGGREGATE,
    FIXED,
    PRIVATIZE,
    RELEASE,
    SCORE,
)
from curvote.protocols.direct.system import SYSTEM as DIRECT
from curvote.protocols.joined.messages import MESSAGES
from curvote.protocols.joined.methods import JOINED
from curvote.protocols.joined.tables import REPORTS_ALONE
from curvote.protocols.majority.messages import Compared
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import COMMON, SECTIONS
from curvote.protocols.volunteers.system import PUBLISH

_HERE = "curvote.protocols.joined"
_AGGREGATE = replace(
    AGGREGATE,
    module=f"{_HERE}.aggregate",
    inputs=("privatize", PUBLISH.name),
    tables=(*AGGREGATE.tables, REPORTS_ALONE),
)
_SCORE = replace(SCORE, module=f"{_HERE}.score")

SYSTEM = System(
    name="joined",
    settings=Settings,
    stages=(*COMMON, PRIVATIZE, PUBLISH, _AGGREGATE, _SCORE),
    production=(*COMMON, RELEASE, PUBLISH, _AGGREGATE),
    messages=MESSAGES,
    compared=(Compared().words,),
    metrics=ERRORS,
    methods=(JOINED, *DIRECT.methods),
    main=("joined",),
    checks=checks.every(checks.tested, choosing.checks, classes=checks.many),
    parts=choosing.parts,
    fixed=FIXED,
    final=finals.one,
    outcome=outcomes.reported,
    sections=SECTIONS,
)
