"""System `mrma_privunit`: MRMA's stages with directions as reports."""

from dataclasses import replace

from curvote.systems.common import checks, declarations, settings, tables
from curvote.systems.direct.system import Direct
from curvote.systems.mrma import system as mrma
from curvote.systems.references.messages import ComparisonLabel

_STAGES = "curvote.systems.mrma.stages"


class Settings(settings.Shared):
    """Settings of directions that train, and of votes."""

    train: settings.Train | None = None
    direct: Direct = Direct()
    aggregate: settings.Aggregate = settings.Aggregate()
    online: mrma.Watch = mrma.Watch()


# No learner: a mean of reports is a classifier.
_TRAIN = declarations.server_stage(
    "train",
    f"{_STAGES}:average_directions",
    ("privatize",),
    tables.WEAK,
    params=mrma.DRAW_PARAMS,
)
_PRIVATIZE = declarations.client_stage(
    "privatize",
    f"{_STAGES}:privatize_directions",
    tables.DIRECTIONS,
    params=("direct.intercept",),
)
_RELEASE = declarations.release_stage(
    _PRIVATIZE, "report", ("ingest", "project"), ("direct.intercept", "project.judge")
)
_SCORE = declarations.score_stage(
    f"{_STAGES}:score_privunit",
    ("project", "train", "aggregate"),
    params=("epsilon", "project.judge", *declarations.ROLE_PARAMS),
)
_EVALUATE, _AGGREGATE, _RELEASE_VOTES = (
    replace(stage, axes=declarations.EPSILON_AXES)
    for stage in (mrma.EVALUATE, mrma.AGGREGATE, mrma.RELEASE_VOTES)
)

SYSTEM = declarations.learning_system(
    "mrma_privunit",
    Settings,
    (_PRIVATIZE, _TRAIN, _EVALUATE, _AGGREGATE, _SCORE),
    f"{mrma.ENSEMBLE_METHODS} majority",
    releases=(_RELEASE, _RELEASE_VOTES),
    study_messages=(ComparisonLabel().describe,),
    main=("mrma",),
    checks=(checks.check_test_clients, checks.check_training_size, checks.check_voters),
    classes=checks.check_two_classes,
    implied_settings=declarations.JUDGED_BY_Z,
    sections=(declarations.NONE_PASSED, declarations.UTILITIES, *declarations.SECTIONS),
    **mrma.VOTED,
)
