"""System `mrma_privunit`: MRMA's stages with directions as reports."""

from dataclasses import replace

from curvote.chain.system import System
from curvote.messages.measures import ERRORS, MAJORITY
from curvote.systems.common import checks, declarations, models, settings, tables
from curvote.systems.direct.system import JUDGED_BY_Z, Direct
from curvote.systems.mrma import system as mrma
from curvote.systems.mrma.privunit.messages import MESSAGES
from curvote.systems.references.messages import ComparisonLabel


class Settings(settings.Shared):
    """Settings of directions that train, and of votes."""

    train: settings.Train | None = None
    direct: Direct = Direct()
    aggregate: settings.Aggregate = settings.Aggregate()
    online: mrma.Watch = mrma.Watch()


# No learner: a mean of reports is a classifier.
_TRAIN = declarations.server_stage(
    "train",
    "curvote.systems.mrma.stages:average_directions",
    ("privatize",),
    tables.WEAK,
    params=mrma.DRAW_PARAMS,
)
_AGGREGATE = replace(mrma.AGGREGATE, axes=declarations.EPSILON_AXES)
_PRIVATIZE = declarations.client_stage(
    "privatize",
    "curvote.systems.mrma.stages:privatize_directions",
    tables.DIRECTIONS,
    params=("direct.intercept",),
)
_RELEASE = declarations.release_stage(
    _PRIVATIZE, "report", ("ingest", "project"), ("direct.intercept", "project.judge")
)
_SCORE = declarations.score_stage(
    "curvote.systems.mrma.stages:score_privunit",
    ("project", "train", "aggregate"),
    params=("epsilon", "project.judge", *declarations.ROLE_PARAMS),
)


SYSTEM = System(
    name="mrma_privunit",
    settings=Settings,
    stages=(
        *declarations.COMMON_STAGES,
        _PRIVATIZE,
        _TRAIN,
        replace(mrma.EVALUATE, axes=declarations.EPSILON_AXES),
        _AGGREGATE,
        _SCORE,
    ),
    production=(
        *declarations.COMMON_STAGES,
        _RELEASE,
        _TRAIN,
        replace(mrma.RELEASE_VOTES, axes=declarations.EPSILON_AXES),
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
    sections=(declarations.NONE_PASSED, declarations.UTILITIES, *declarations.SECTIONS),
)
