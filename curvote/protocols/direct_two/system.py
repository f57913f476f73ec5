"""`direct` in two rounds as data: whitening, then reports in its terms."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.measure import Look, Method
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
    TERMS,
)
from curvote.protocols.direct.tables import DIRECTIONS, WHITENING
from curvote.protocols.direct_two.messages import MESSAGES
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.stages.declared import (
    COMMON,
    SECTIONS,
    drawn,
    released,
    served,
)

_HERE = "curvote.protocols.direct_two"
_PRIVATIZE = replace(PRIVATIZE, module=f"{_HERE}.privatize")
_WHITEN = served("whiten", f"{_HERE}.whiten", ("privatize",), WHITENING)
_REFINE = drawn(
    "refine", f"{_HERE}.refine", DIRECTIONS, ("project", "whiten"), params=TERMS
)
_RELEASE_SECOND = released(_REFINE, "refinement", ("ingest", "privatize", "whiten"))
_COMBINE = replace(
    AGGREGATE, module=f"{_HERE}.combine", inputs=("privatize", "whiten", "refine")
)

_TWO = Method(
    "two",
    "direct, two rounds",
    "The first clients' reports centre and whiten what the others report.",
    Look("#d55e00", "8", width=2.6, size=6.5, above=6),
    rank=110,
)


SYSTEM = System(
    name="direct_two",
    settings=Settings,
    stages=(*COMMON, _PRIVATIZE, _WHITEN, _REFINE, _COMBINE, SCORE),
    production=(*COMMON, RELEASE, _WHITEN, _RELEASE_SECOND, _COMBINE),
    messages=MESSAGES,
    compared=(Compared().words,),
    metrics=ERRORS,
    methods=(_TWO, MAJORITY),
    main=("two",),
    checks=checks.every(checks.tested, choosing.checks, classes=checks.many),
    parts=choosing.parts,
    fixed=FIXED,
    final=finals.one,
    outcome=outcomes.reported,
    sections=SECTIONS,
)
