"""System `mrma_privunit`: MRMA's stages with directions as reports."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.system import System
from curvote.protocols import checks, finals, outcomes
from curvote.protocols.direct.system import JUDGED_BY_Z
from curvote.protocols.direct.tables import DIRECTIONS
from curvote.protocols.majority.messages import ComparisonLabel
from curvote.protocols.majority.methods import MAJORITY
from curvote.protocols.measures import ERRORS
from curvote.protocols.mrma import methods
from curvote.protocols.mrma.system import (
    AGGREGATE,
    DRAW_PARAMS,
    EVALUATE,
    RELEASE_VOTES,
)
from curvote.protocols.mrma.tables import WEAK
from curvote.protocols.mrma_privunit.messages import MESSAGES
from curvote.protocols.mrma_privunit.settings import Settings
from curvote.protocols.stages.declared import (
    COMMON_STAGES,
    EPSILON_AXES,
    NONE_PASSED,
    ROLE_PARAMS,
    SECTIONS,
    UTILITIES,
    client_stage,
    release_stage,
    score_stage,
    server_stage,
)

_HERE = "curvote.protocols.mrma_privunit"
# No learner: a mean of reports is a classifier.
_TRAIN = server_stage(
    "train", f"{_HERE}.train", ("privatize",), WEAK, params=DRAW_PARAMS
)
_AGGREGATE = replace(AGGREGATE, axes=EPSILON_AXES)
_PRIVATIZE = client_stage(
    "privatize", f"{_HERE}.privatize", DIRECTIONS, params=("direct.intercept",)
)
_RELEASE = release_stage(
    _PRIVATIZE,
    "report",
    ("ingest", "project"),
    ("direct.intercept", "project.judge"),
)
_SCORE = score_stage(
    f"{_HERE}.score",
    ("project", "train", "aggregate"),
    params=("epsilon", "project.judge", *ROLE_PARAMS),
)


SYSTEM = System(
    name="mrma_privunit",
    settings=Settings,
    stages=(
        *COMMON_STAGES,
        _PRIVATIZE,
        _TRAIN,
        replace(EVALUATE, axes=EPSILON_AXES),
        _AGGREGATE,
        _SCORE,
    ),
    production=(
        *COMMON_STAGES,
        _RELEASE,
        _TRAIN,
        replace(RELEASE_VOTES, axes=EPSILON_AXES),
        _AGGREGATE,
    ),
    messages=MESSAGES,
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(*methods.ENSEMBLE_METHODS, MAJORITY),
    main=("mrma",),
    checks=checks.combine_checks(
        checks.check_test_clients, checks.check_training_size, checks.check_voters
    ),
    implied_settings=JUDGED_BY_Z,
    final_model=finals.ensemble_model,
    production_metrics=outcomes.vote_outcome,
    needs_new_round=outcomes.votes_declined,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
