"""Two rounds as data: what the first says is likely narrows what the second asks."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.stage import Stage
from curvote.protocols.labels import system as labels
from curvote.protocols.labels.asked import asked_twice
from curvote.protocols.labels.tables import PRIORS
from curvote.protocols.labels.two.messages import MESSAGES, PROTOCOL
from curvote.protocols.stages.declared import INGEST, ROLES

_HERE = "curvote.protocols.labels.two.stages"
_AXES = ("epsilon", "learner")

_FIRST = replace(
    labels.PRIVATIZE, module=f"{_HERE}.privatize", params=("epsilon", *ROLES)
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
    name=PROTOCOL,
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
    asked=asked_twice,
    parts=labels.whole,
)
