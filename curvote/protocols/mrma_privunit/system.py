"""`mrma_privunit` as data: MRMA's stages, but for reports and what learns."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.direct.system import FIXED
from curvote.protocols.direct.tables import DIRECTIONS
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.mrma import methods
from curvote.protocols.mrma.system import (
    AGGREGATE,
    DRAW,
    EVALUATE,
    RELEASE_VOTES,
)
from curvote.protocols.mrma.tables import WEAK
from curvote.protocols.mrma_privunit.messages import MESSAGES
from curvote.protocols.mrma_privunit.settings import Settings
from curvote.protocols.stages.declared import (
    AXES,
    COMMON,
    NONE_PASSED,
    ROLES,
    SECTIONS,
    UTILITIES,
    drawn,
    released,
    scored,
    served,
)

_HERE = "curvote.protocols.mrma_privunit"
# No learner: a mean of reports is a classifier.
_TRAIN = served("train", f"{_HERE}.train", ("privatize",), WEAK, params=DRAW)
_AGGREGATE = replace(AGGREGATE, axes=AXES)
_PRIVATIZE = drawn(
    "privatize", f"{_HERE}.privatize", DIRECTIONS, params=("direct.intercept",)
)
_RELEASE = released(
    _PRIVATIZE,
    "report",
    ("ingest", "project"),
    ("direct.intercept", "project.judge"),
)
_SCORE = scored(
    f"{_HERE}.score",
    ("project", "train", "aggregate"),
    params=("epsilon", "project.judge", *ROLES),
)


SYSTEM = System(
    name="mrma_privunit",
    settings=Settings,
    stages=(
        *COMMON,
        _PRIVATIZE,
        _TRAIN,
        replace(EVALUATE, axes=AXES),
        _AGGREGATE,
        _SCORE,
    ),
    production=(
        *COMMON,
        _RELEASE,
        _TRAIN,
        replace(RELEASE_VOTES, axes=AXES),
        _AGGREGATE,
    ),
    messages=MESSAGES,
    compared=(Compared().words,),
    metrics=ERRORS,
    methods=(*methods.OWN, MAJORITY),
    main=("mrma",),
    checks=checks.every(checks.tested, checks.trained, checks.judged),
    fixed=FIXED,
    final=finals.ensemble,
    outcome=outcomes.voted,
    alarm=outcomes.alarm,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
