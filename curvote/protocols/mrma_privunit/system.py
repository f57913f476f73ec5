"""`mrma_privunit` as data: MRMA's stages, but for reports and what learns."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.direct.system import AXES, FIXED
from curvote.protocols.direct.tables import DIRECTIONS
from curvote.protocols.majority.messages import Compared
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.mrma import methods
from curvote.protocols.mrma.system import AGGREGATE, EVALUATE, RELEASE_VOTES, TRAIN
from curvote.protocols.mrma_privunit.messages import MESSAGES
from curvote.protocols.mrma_privunit.settings import Settings
from curvote.protocols.stages.declared import (
    COMMON,
    NONE_PASSED,
    ROLES,
    SECTIONS,
    UTILITIES,
    WHO,
    drawn,
    released,
    scored,
)
from curvote.protocols.watching import alarm

_HERE = "curvote.protocols.mrma_privunit"
# No learner: a mean of reports is a classifier.
_TRAIN = replace(
    TRAIN,
    module=f"{_HERE}.train",
    axes=AXES,
    params=("train.count", "train.size", "seed", "replicates"),
    plugins=(),
)
_AGGREGATE = replace(AGGREGATE, axes=AXES)
_PRIVATIZE = drawn(
    "privatize",
    f"{_HERE}.privatize",
    DIRECTIONS,
    inputs=("project",),
    axes=AXES,
    params=("epsilon", "direct.intercept", *ROLES),
)
_RELEASE = released(
    "privatize",
    "report",
    DIRECTIONS,
    inputs=("ingest", "project"),
    axes=AXES,
    params=("epsilon", "direct.intercept", "protocol", "project.judge", *WHO),
)
_SCORE = scored(
    f"{_HERE}.score",
    ("project", "train", "aggregate"),
    axes=AXES,
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
    alarm=alarm,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
