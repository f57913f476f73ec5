"""`direct` in two rounds as data: whitening, then reports in its terms."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.auto import choosing
from curvote.protocols.direct.methods import TWO
from curvote.protocols.direct.settings import Settings
from curvote.protocols.direct.system import (
    AGGREGATE,
    AXES,
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
    ROLES,
    SECTIONS,
    WHO,
    drawn,
    released,
)

_HERE = "curvote.protocols.direct_two"
_PRIVATIZE = replace(PRIVATIZE, module=f"{_HERE}.privatize")
_WHITEN = Stage(
    "whiten",
    f"{_HERE}.whiten",
    inputs=("privatize",),
    axes=AXES,
    params=("replicates",),
    tables=(WHITENING,),
    side="server",
)
_REFINE = drawn(
    "refine",
    f"{_HERE}.refine",
    DIRECTIONS,
    inputs=("project", "whiten"),
    axes=AXES,
    params=(*TERMS, *ROLES),
)
_RELEASE_SECOND = released(
    "refine",
    "refinement",
    DIRECTIONS,
    inputs=("ingest", "privatize", "whiten"),
    axes=AXES,
    params=("epsilon", "protocol", *WHO),
)
_COMBINE = replace(
    AGGREGATE, module=f"{_HERE}.combine", inputs=("privatize", "whiten", "refine")
)


SYSTEM = System(
    name="direct_two",
    settings=Settings,
    stages=(*COMMON, _PRIVATIZE, _WHITEN, _REFINE, _COMBINE, SCORE),
    production=(*COMMON, RELEASE, _WHITEN, _RELEASE_SECOND, _COMBINE),
    messages=MESSAGES,
    compared=(Compared().words,),
    metrics=ERRORS,
    methods=(TWO, MAJORITY),
    main=("two",),
    checks=checks.every(checks.tested, choosing.checks),
    parts=choosing.parts,
    fixed=FIXED,
    final=finals.one,
    outcome=outcomes.reported,
    sections=SECTIONS,
)
