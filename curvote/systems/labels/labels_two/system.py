"""System of two rounds: what the first says is likely narrows what the second asks."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.stage import Stage
from curvote.systems.common.declarations import INGEST, ROLE_PARAMS
from curvote.systems.labels import messages
from curvote.systems.labels import system as labels
from curvote.systems.labels.system import PRIORS

_AXES = ("epsilon", "learner")

_FIRST = replace(
    labels.PRIVATIZE,
    module="curvote.systems.labels.labels_two.stages:first_round",
    params=("epsilon", *ROLE_PARAMS),
)
_LEARN = Stage(
    "learn",
    "curvote.systems.labels.labels_two.stages:learn",
    inputs=("features", "graph", "privatize"),
    axes=_AXES,
    params=("learner", "labels.calibrate", "labels.decide", "seed", "replicates"),
    plugins=(labels.LEARNERS,),
    tables=(PRIORS,),
    side="server",
    libraries=labels.LIBRARIES,
    block=1,
)
_AGAIN = replace(
    _FIRST,
    name="again",
    module="curvote.systems.labels.labels_two.stages:second_round",
    inputs=("ingest", "learn"),
    axes=_AXES,
)
_TRAIN = replace(
    labels.TRAIN,
    module="curvote.systems.labels.labels_two.stages:train",
    inputs=("features", "graph", "privatize", "learn", "again"),
)

SYSTEM = replace(
    labels.SYSTEM,
    name=messages.TWO_ROUNDS,
    stages=(
        *(INGEST, labels.FEATURES_OF, labels.GRAPH_OF),
        *(_FIRST, _LEARN, _AGAIN, _TRAIN, labels.SCORE),
    ),
    production=(),
    messages=messages.TWO_ROUNDS_MESSAGES,
    audit_tasks=messages.tasks_of_two_rounds,
    resolve_parts=labels.single_part,
)
