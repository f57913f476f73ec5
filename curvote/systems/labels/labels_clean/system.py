"""System of the comparison without privacy: labels that nobody would ever send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.settings import Strict
from curvote.chain.system import MessageDescription, System
from curvote.messages.measures import CLEAN, LEARNER
from curvote.systems.common.declarations import INGEST, ROLE_PARAMS, score_stage
from curvote.systems.common.settings import Clients, Learner
from curvote.systems.labels import system as labels
from curvote.systems.labels.metrics import METRICS
from curvote.systems.labels.settings import Labels, Public, check_learning


class CleanSettings(Strict):
    """Settings of private labels, without an epsilon."""

    clients: Clients
    public: Public = Public()
    labels: Labels = Labels()
    learners: list[Learner] = [Learner(name="auto", label="auto")]


_SCORE = score_stage(
    "curvote.systems.labels.stages:score_clean",
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
