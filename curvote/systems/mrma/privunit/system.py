"""System `mrma_privunit`: MRMA's stages with directions as reports."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.common import checks, models
from curvote.systems.common.declarations import (
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
from curvote.systems.common.settings import Aggregate, Shared, Train
from curvote.systems.common.tables import DIRECTIONS, WEAK
from curvote.systems.direct.system import JUDGED_BY_Z, Direct
from curvote.systems.mrma import system as mrma
from curvote.systems.mrma.privunit.messages import MESSAGES
from curvote.systems.references.messages import ComparisonLabel


class Settings(Shared):
    """Settings of directions that train, and of votes."""

    train: Train | None = None
    direct: Direct = Direct()
    aggregate: Aggregate = Aggregate()
    online: mrma.Watch = mrma.Watch()


# No learner: a mean of reports is a classifier.
_TRAIN = server_stage(
    "train",
    "curvote.systems.mrma.stages:average_directions",
    ("privatize",),
    WEAK,
    params=mrma.DRAW_PARAMS,
)
_AGGREGATE = replace(mrma.AGGREGATE, axes=EPSILON_AXES)
_PRIVATIZE = client_stage(
    "privatize",
    "curvote.systems.mrma.stages:privatize_directions",
    DIRECTIONS,
    params=("direct.intercept",),
)
_RELEASE = release_stage(
    _PRIVATIZE, "report", ("ingest", "project"), ("direct.intercept", "project.judge")
)
_SCORE = score_stage(
    "curvote.systems.mrma.stages:score_privunit",
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
        replace(mrma.EVALUATE, axes=EPSILON_AXES),
        _AGGREGATE,
        _SCORE,
    ),
    production=(
        *COMMON_STAGES,
        _RELEASE,
        _TRAIN,
        replace(mrma.RELEASE_VOTES, axes=EPSILON_AXES),
        _AGGREGATE,
    ),
    messages=MESSAGES,
    study_messages=(ComparisonLabel().describe,),
    metrics=ERRORS,
    methods=(*mrma.ENSEMBLE_METHODS, MAJORITY),
    main=("mrma",),
    checks=checks.combine_checks(
        checks.check_test_clients, checks.check_training_size, checks.check_voters
    ),
    implied_settings=JUDGED_BY_Z,
    final_model=models.ensemble_model,
    production_metrics=models.vote_outcome,
    needs_new_round=models.votes_declined,
    sections=(NONE_PASSED, UTILITIES, *SECTIONS),
)
