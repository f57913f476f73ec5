"""Private labels as data: codes of labels, and models of public features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.chain.axis import EPSILON
from curvote.chain.axis import PipelineSettings as Given
from curvote.chain.stage import Stage
from curvote.chain.system import Part, System
from curvote.labels.task import ASKS
from curvote.protocols.labels.asked import tasks_by_level
from curvote.protocols.labels.checks import check_settings
from curvote.protocols.labels.final import final_model, production_metrics
from curvote.protocols.labels.graphs import needs_graph
from curvote.protocols.labels.messages import MESSAGES
from curvote.protocols.labels.methods import METHODS, METRICS
from curvote.protocols.labels.settings import LabelSettings
from curvote.protocols.labels.tables import (
    CODES,
    FEATURES,
    GRAPH,
    HONEST,
    MODEL,
    RECALLS,
    REDUCTION,
    RELIABILITY,
    SAID,
    SHARES,
)
from curvote.protocols.labels.two.messages import TWO_ROUNDS
from curvote.protocols.measures import LEARNER
from curvote.protocols.stages.declared import (
    DATA_SET,
    DATASETS,
    INGEST,
    ROLE_PARAMS,
    score_stage,
)

_HERE = "curvote.protocols.labels.stages"
_WHO = ("clients", "source.groups", "seed")
LEARNERS = ("curvote.labels.learners.registry:LEARNERS", "learner.name")
LIBRARIES = ("scikit-learn", "scipy", "skops")

FEATURES_OF = Stage(
    "features",
    f"{_HERE}.features",
    inputs=("ingest",),
    params=("public.scale", "public.reduce", "public.size"),
    tables=(FEATURES, REDUCTION),
    libraries=LIBRARIES,
)
GRAPH_OF = Stage(
    "graph",
    f"{_HERE}.graph",
    inputs=("features",),
    params=("graph",),
    tables=(GRAPH,),
    libraries=LIBRARIES,
    block=1,
)
PRIVATIZE = Stage(
    "privatize",
    f"{_HERE}.privatize",
    inputs=("ingest",),
    axes=("epsilon",),
    params=("epsilon", "labels.encoder", *ROLE_PARAMS),
    tables=(CODES,),
    side="client -> server",
)
TRAIN = Stage(
    "train",
    f"{_HERE}.train",
    inputs=("features", "graph", "privatize"),
    axes=("epsilon", "learner"),
    params=(
        *("learner", "labels.holdout", "labels.decide", "labels.calibrate"),
        *("seed", "replicates"),
    ),
    plugins=(LEARNERS,),
    tables=(SAID, HONEST, SHARES, MODEL),
    side="server",
    libraries=LIBRARIES,
    block=1,
)
_SCORE = score_stage(
    f"{_HERE}.score",
    ("ingest", "train"),
    ("epsilon", "learner"),
    ("source", *ROLE_PARAMS),
    plugins=(DATASETS,),
)
SCORE = replace(_SCORE, tables=(*_SCORE.tables, RELIABILITY, RECALLS))
_RELEASED = replace(
    PRIVATIZE,
    module=f"{_HERE}.released",
    params=("epsilon", "protocol", "labels.encoder", "source.classes", *_WHO),
    message=ASKS,
    collected=f"{_HERE}.collected",
)


def normalize(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings, with whether a graph of the records is needed.

    What settings leave to their defaults may be left out here: no release reads it.
    """
    return values | {"graph": needs_graph(values.get("learners", ()))}


def single_part(settings: Given) -> tuple[Part, ...]:
    """Return the settings as they are."""
    return (Part(settings),)


def resolve_parts(settings: Given) -> tuple[Part, ...]:
    """Return the settings as one part; two rounds are another chain of that name."""
    if settings.labels.rounds == 1:
        return single_part(settings)
    update = {"protocol": TWO_ROUNDS, "label": settings.called}
    return (Part(settings.model_copy(update=update)),)


_PAGE = "curvote.reporting.sections.labels"

SYSTEM = System(
    name="labels",
    settings=LabelSettings,
    stages=(INGEST, FEATURES_OF, GRAPH_OF, PRIVATIZE, TRAIN, SCORE),
    production=(INGEST, FEATURES_OF, GRAPH_OF, _RELEASED, TRAIN),
    axes=(EPSILON, LEARNER),
    messages=MESSAGES,
    audit_tasks=tasks_by_level,
    metrics=METRICS,
    methods=METHODS,
    main=tuple(method.name for method in METHODS),
    checks=check_settings,
    resolve_parts=resolve_parts,
    normalize=normalize,
    shorthand=("encoder", "rounds", "holdout", "decide", "calibrate"),
    final_model=final_model,
    production_metrics=production_metrics,
    sections=(
        DATA_SET,
        *(f"{_PAGE}.{name}" for name in ("features", "by_classes", "honest")),
        *(f"{_PAGE}.{name}" for name in ("each_class", "calibrated", "said_by_one")),
    ),
)
