"""The comparison without privacy as data: labels that nobody would ever send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import MessageDescription
from curvote.chain.system import System
from curvote.protocols.labels import system as labels
from curvote.protocols.labels.checks import check_learning
from curvote.protocols.labels.clean.settings import CleanSettings
from curvote.protocols.labels.methods import METRICS
from curvote.protocols.measures import LEARNER
from curvote.protocols.non_private.methods import CLEAN
from curvote.protocols.stages.declared import INGEST, ROLE_PARAMS, score_stage

_SCORE = score_stage(
    "curvote.protocols.labels.clean.score",
    ("ingest", "features", "graph"),
    axes=("learner",),
    params=("learner", "labels.decide", "labels.calibrate", *ROLE_PARAMS),
    plugins=(labels.LEARNERS,),
    libraries=labels.LIBRARIES,
    block=1,
)


def describe_label(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return the description of the one thing that would be sent: the label."""
    who, what = "every client who trains", "its label, as it is"
    return [MessageDescription(who, what, "none", epsilon="no privacy")]


# No model is kept: it would be fitted on what no client ever sends.
SYSTEM = System(
    name="labels_clean",
    settings=CleanSettings,
    stages=(INGEST, labels.FEATURES_OF, labels.GRAPH_OF, _SCORE),
    axes=(LEARNER,),
    x=EPSILON,
    audit_tasks=lambda settings, read: (),
    study_messages=(describe_label,),
    metrics=METRICS,
    methods=(CLEAN,),
    main=(CLEAN.name,),
    checks=check_learning,
    normalize=labels.normalize,
)
