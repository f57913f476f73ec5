"""Private numbers as data: a study of regressors trained on noised numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import MessageDescription
from curvote.chain.stage import Stage
from curvote.chain.system import System
from curvote.protocols.labels import system as labels
from curvote.protocols.labels.regression.checks import check_settings
from curvote.protocols.labels.regression.messages import MESSAGES
from curvote.protocols.labels.regression.methods import METHODS, METRICS, REGRESSION
from curvote.protocols.labels.regression.settings import RegressionSettings
from curvote.protocols.labels.regression.tables import (
    FORECAST,
    HISTOGRAM_NUMBERS,
    HOLDOUT_NUMBERS,
    NUMBERS,
)
from curvote.protocols.labels.tables import HONEST
from curvote.protocols.measures import LEARNER
from curvote.protocols.stages.declared import DATA_SET, INGEST, ROLE_PARAMS, score_stage

_HERE = "curvote.protocols.labels.regression"
_NOISED = ("epsilon", "labels_regression.randomizer")

PRIVATIZE = Stage(
    "privatize",
    f"{_HERE}.privatize",
    inputs=("ingest",),
    axes=("epsilon",),
    params=(
        *_NOISED,
        "labels_regression.share",
        "labels_regression.holdout",
        *ROLE_PARAMS,
    ),
    tables=(HISTOGRAM_NUMBERS, NUMBERS, HOLDOUT_NUMBERS),
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
SCORE = score_stage(
    f"{_HERE}.score",
    ("ingest", "features", "train"),
    ("epsilon", "learner"),
    ("learner", *ROLE_PARAMS),
    libraries=("scikit-learn", "scipy"),
)


def describe_numbers(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return descriptions of what leaves a client; so far only a study draws it."""
    randomizer = str(config["labels_regression"]["randomizer"])
    detail = "once: for a histogram, for the model or for its score"
    return [
        MessageDescription(
            "every client who trains", "one noised number", randomizer, detail
        )
    ]


SYSTEM = System(
    name="labels_regression",
    settings=RegressionSettings,
    stages=(INGEST, labels.FEATURES_OF, PRIVATIZE, TRAIN, SCORE),
    axes=(EPSILON, LEARNER),
    messages=MESSAGES,
    study_messages=(describe_numbers,),
    metrics=METRICS,
    methods=METHODS,
    main=(REGRESSION.name,),
    checks=check_settings,
    shorthand=("randomizer", "share", "holdout"),
    sections=(DATA_SET, "curvote.reporting.sections.labels.features"),
)
