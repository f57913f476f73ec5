"""System of private labels: its tables, stages, graph and final model, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.stage import FILE, ROWS, TEXT, VECTOR, Stage, StageContext, Table
from curvote.chain.system import Part, System, View
from curvote.messages.measures import LEARNER
from curvote.systems.common import declarations
from curvote.systems.common.models import record_columns, unpack_model
from curvote.systems.labels import messages
from curvote.systems.labels.metrics import METHODS, METRICS
from curvote.systems.labels.settings import LabelSettings, check_settings

if TYPE_CHECKING:
    from curvote.systems.labels.learners.base import Learner
    from curvote.systems.labels.model import LabelClassifier


# What everybody knows of each record; of which clients it is part of the source.
FEATURES: Final = Table(
    "features",
    {"record": TEXT, "values": VECTOR},
    side="public",
    unit="record",
    shared=True,
)
REDUCTION: Final = Table(
    "reduction", {"model": FILE}, side="public", unit="number", shared=True
)
GRAPH: Final = Table(
    "graph", {"model": FILE}, side="public", unit="number", shared=True
)
CODES: Final = Table("codes", {"record": TEXT, "code": ROWS}, unit="message")
PRIORS: Final = Table("priors", {"record": TEXT, "prior": VECTOR}, unit="number")
# What the server says of records whose labels it has no code of.
PREDICTIONS: Final = Table(
    "said",
    {"record": TEXT, "place": "int64", "confidence": "float64"},
    unit="number",
)
SHARES: Final = Table(
    "shares", {"class": TEXT, "share": "float64", "se": "float64"}, unit="number"
)
# How good the chosen model is by codes that took no part in choosing it.
HONEST: Final = Table(
    "honest",
    {
        "scoring": TEXT,
        "value": "float64",
        "se": "float64",
        "low": "float64",
        "high": "float64",
        "n": "int64",
    },
    unit="number",
)
# One row, of the first repetition only.
MODEL: Final = Table("kept", {"model": FILE}, unit="classifier")
RELIABILITY: Final = Table(
    "reliability",
    {"low": "float64", "n": "int64", "confidence": "float64", "accuracy": "float64"},
    side="client (study)",
    unit="score",
)
RECALLS: Final = Table(
    "recalls",
    {"class": TEXT, "n": "int64", "recognised": "int64", "said": "int64"},
    side="client (study)",
    unit="score",
)


_GRAPH_PARAM = "spectral"
_GRAPH_SIZES = ("anchors", "neighbours")


def needs_graph(learners: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether some learner takes a graph and states none of its own.

    Parameters that are left to their defaults may be left out.
    """
    from curvote.systems.labels.learners.factory import make  # scikit-learn: a second

    unfitted = (make(entry["name"], **entry.get("params", {})) for entry in learners)
    return any(map(_takes_graph, unfitted))


def _takes_graph(learner: Learner) -> bool:
    params, usual = learner.get_params(), type(learner)().get_params()
    has_own_graph = any(params.get(name) != usual.get(name) for name in _GRAPH_SIZES)
    return _GRAPH_PARAM in params and params[_GRAPH_PARAM] is None and not has_own_graph


def cell_learner(context: StageContext) -> Learner:
    """Return the learner of a cell, on the stored graph where there is one."""
    from curvote.systems.labels.learners.factory import make

    setting = context.params["learner"]
    learner = make(setting["name"], **setting["params"])
    models = context.rows("graph", "graph")["model"]
    if not (len(models) and _takes_graph(learner)):
        return learner
    from sklearn.frozen import FrozenEstimator

    stored = FrozenEstimator(unpack_model(models[0]))
    with_graph: Learner = learner.set_params(**{_GRAPH_PARAM: stored})
    return with_graph


def final_model(view: View) -> LabelClassifier:
    """Return the classifier of the first repetition."""
    from curvote.systems.labels.model import LabelClassifier  # scikit-learn

    model = unpack_model(view.columns("train", "kept")["model"][0])
    reduction = unpack_model(view.columns("features", "reduction")["model"][0])
    texts = view.metadata("features").get("categories")
    return LabelClassifier(record_columns(view, "features"), reduction, model, texts)


def production_metrics(view: View) -> dict[str, float]:
    """Return the number of codes, and the accuracy by held-out ones."""
    scores = view.columns("train", "honest")
    metrics = {"codes": float(view.count("privatize"))}
    for at in np.flatnonzero(scores["scoring"] == "accuracy"):
        metrics |= {"accuracy": float(scores["value"][at])}
        metrics |= {"accuracy_se": float(scores["se"][at])}
    return metrics


_WHO = ("clients", "source.groups", "seed")
LEARNERS = ("curvote.systems.labels.learners.registry:LEARNERS", "learner.name")
LIBRARIES = ("scikit-learn", "scipy", "skops")

FEATURES_OF = Stage(
    "features",
    "curvote.systems.labels.stages:features",
    inputs=("ingest",),
    params=("public.scale", "public.reduce", "public.size"),
    tables=(FEATURES, REDUCTION),
    libraries=LIBRARIES,
)
GRAPH_OF = Stage(
    "graph",
    "curvote.systems.labels.stages:graph",
    inputs=("features",),
    params=("graph",),
    tables=(GRAPH,),
    libraries=LIBRARIES,
    block=1,
)
PRIVATIZE = Stage(
    "privatize",
    "curvote.systems.labels.stages:privatize",
    inputs=("ingest",),
    axes=("epsilon",),
    params=("epsilon", "labels.encoder", *declarations.ROLE_PARAMS),
    tables=(CODES,),
    side="client -> server",
)
TRAIN = Stage(
    "train",
    "curvote.systems.labels.stages:train",
    inputs=("features", "graph", "privatize"),
    axes=("epsilon", "learner"),
    params=(
        *("learner", "labels.holdout", "labels.decide", "labels.calibrate"),
        *("seed", "replicates"),
    ),
    plugins=(LEARNERS,),
    tables=(PREDICTIONS, HONEST, SHARES, MODEL),
    side="server",
    libraries=LIBRARIES,
    block=1,
)
_SCORE = declarations.score_stage(
    "curvote.systems.labels.stages:score",
    ("ingest", "train"),
    ("epsilon", "learner"),
    ("source", *declarations.ROLE_PARAMS),
    plugins=(declarations.DATASETS,),
)
SCORE = replace(_SCORE, tables=(*_SCORE.tables, RELIABILITY, RECALLS))
_RELEASED = replace(
    PRIVATIZE,
    module="curvote.systems.labels.stages:release",
    params=("epsilon", "protocol", "labels.encoder", "source.classes", *_WHO),
    message=messages.ASKS,
    collected="curvote.systems.labels.stages:collect_codes",
)


def normalize(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings, with whether a graph of the records is needed.

    What settings leave to their defaults may be left out here: no release reads it.
    """
    return values | {"graph": needs_graph(values.get("learners", ()))}


def single_part(settings: PipelineSettings) -> tuple[Part, ...]:
    """Return the settings as they are."""
    return (Part(settings),)


def resolve_parts(settings: PipelineSettings) -> tuple[Part, ...]:
    """Return the settings as one part; two rounds are another chain of that name."""
    if settings.labels.rounds == 1:
        return single_part(settings)
    update = {"protocol": messages.TWO_ROUNDS, "label": settings.called}
    return (Part(settings.model_copy(update=update)),)


_PAGE = "curvote.systems.labels.page.sections"

SYSTEM = System(
    name="labels",
    settings=LabelSettings,
    stages=(declarations.INGEST, FEATURES_OF, GRAPH_OF, PRIVATIZE, TRAIN, SCORE),
    production=(declarations.INGEST, FEATURES_OF, GRAPH_OF, _RELEASED, TRAIN),
    axes=(EPSILON, LEARNER),
    messages=messages.MESSAGES,
    audit_tasks=messages.tasks_by_level,
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
        declarations.DATA_SET,
        f"{_PAGE}:gather_features",
        f"{_PAGE}:gather_by_classes",
        f"{_PAGE}:gather_honest",
        f"{_PAGE}:gather_each_class",
        f"{_PAGE}:gather_calibrated",
        f"{_PAGE}:gather_code_report",
    ),
)
