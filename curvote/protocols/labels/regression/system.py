"""Private numbers as data: a study of regressors trained on noised numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import Sent
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols.labels import system as labels
from curvote.protocols.labels.regression.checks import checks
from curvote.protocols.labels.regression.messages import MESSAGES
from curvote.protocols.labels.regression.methods import LEARNT, METHODS, METRICS
from curvote.protocols.labels.regression.settings import Settings
from curvote.protocols.labels.regression.tables import (
    FORECAST,
    HELD,
    SHAPES,
)
from curvote.protocols.labels.regression.tables import LEARNT as NUMBERS
from curvote.protocols.labels.tables import HONEST
from curvote.protocols.measures import LEARNER
from curvote.protocols.stages.declared import DATA_SET, INGEST, ROLES, scored

_HERE = "curvote.protocols.labels.regression"
_NOISED = ("epsilon", "labels_regression.randomizer")

PRIVATIZE = Stage(
    "privatize",
    f"{_HERE}.privatize",
    inputs=("ingest",),
    axes=("epsilon",),
    params=(*_NOISED, "labels_regression.share", "labels_regression.holdout", *ROLES),
    tables=(SHAPES, NUMBERS, HELD),
    side="client -> server",
)
TRAIN = Stage(
    "train",
    f"{_HERE}.train",
    inputs=("features", "privatize"),
    axes=("epsilon", "learner"),
    params=("learner", *_NOISED, "seed", "replicates"),
    tables=(FORECAST, HONEST),
    side="server",
    libraries=("scikit-learn", "scipy"),
)
SCORE = scored(
    f"{_HERE}.score",
    ("ingest", "features", "train"),
    ("epsilon", "learner"),
    ("learner", *ROLES),
    libraries=("scikit-learn", "scipy"),
)


def told(config: Mapping[str, Any], d: int) -> list[Sent]:
    """Return what leaves a client, in words; so far only a study draws it."""
    randomizer = str(config["labels_regression"]["randomizer"])
    detail = "once: for a histogram, for the model or for its score"
    return [Sent("every client who trains", "one noised number", randomizer, detail)]


SYSTEM = System(
    name="labels_regression",
    settings=Settings,
    stages=(INGEST, labels.FEATURES_OF, PRIVATIZE, TRAIN, SCORE),
    axes=(EPSILON, LEARNER),
    messages=MESSAGES,
    compared=(told,),
    metrics=METRICS,
    methods=METHODS,
    main=(LEARNT.name,),
    checks=checks,
    short=("randomizer", "share", "holdout"),
    sections=(DATA_SET, "curvote.reporting.sections.labels.features"),
)
