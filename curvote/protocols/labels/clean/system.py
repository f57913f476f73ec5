"""The comparison without privacy as data: labels that nobody would ever send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.sent import Sent
from curvote.chain.system import System
from curvote.protocols.labels import system as labels
from curvote.protocols.labels.checks import learned
from curvote.protocols.labels.clean.settings import Settings
from curvote.protocols.labels.methods import METRICS
from curvote.protocols.measures import LEARNER
from curvote.protocols.non_private.methods import CLEAN
from curvote.protocols.stages.declared import INGEST, ROLES, scored

_SCORE = scored(
    "curvote.protocols.labels.clean.score",
    ("ingest", "features", "graph"),
    axes=("learner",),
    params=("learner", "labels.decide", "labels.calibrate", *ROLES),
    plugins=(labels.LEARNERS,),
    libraries=labels.LIBRARIES,
    block=1,
)


def told(config: Mapping[str, Any], d: int) -> list[Sent]:
    """Return in words the one thing that this system would ask for: the label."""
    who, what = "every client who trains", "its label, as it is"
    return [Sent(who, what, "none", epsilon="no privacy")]


# No model is kept: it would be fitted on what no client ever sends.
SYSTEM = System(
    name="labels_clean",
    settings=Settings,
    stages=(INGEST, labels.FEATURES_OF, labels.GRAPH_OF, _SCORE),
    axes=(LEARNER,),
    x=EPSILON,
    asked=lambda settings, read: (),
    compared=(told,),
    metrics=METRICS,
    methods=(CLEAN,),
    main=(CLEAN.name,),
    checks=learned,
    spelled=labels.spelled,
)
