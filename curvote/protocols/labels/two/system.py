"""System of two rounds: what the first says is likely narrows what the second asks."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.stage import Stage
from curvote.protocols.labels import system as labels
from curvote.protocols.labels.asked import tasks_of_two_rounds
from curvote.protocols.labels.tables import PRIORS
from curvote.protocols.labels.two.messages import MESSAGES, TWO_ROUNDS
from curvote.protocols.stages.declared import INGEST, ROLE_PARAMS

_HERE = "curvote.protocols.labels.two.stages"
_AXES = ("epsilon", "learner")

_FIRST = replace(
    labels.PRIVATIZE, module=f"{_HERE}.privatize", params=("epsilon", *ROLE_PARAMS)
)
_LEARN = Stage(
    "learn",
    f"{_HERE}.learn",
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
    module=f"{_HERE}.again",
    inputs=("ingest", "learn"),
    axes=_AXES,
)
_TRAIN = replace(
    labels.TRAIN,
    module=f"{_HERE}.train",
    inputs=("features", "graph", "privatize", "learn", "again"),
)

SYSTEM = replace(
    labels.SYSTEM,
    name=TWO_ROUNDS,
    stages=(
        INGEST,
        labels.FEATURES_OF,
        labels.GRAPH_OF,
        _FIRST,
        _LEARN,
        _AGAIN,
        _TRAIN,
        labels.SCORE,
    ),
    production=(),
    messages=MESSAGES,
    audit_tasks=tasks_of_two_rounds,
    resolve_parts=labels.single_part,
)
