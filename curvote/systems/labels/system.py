"""Systems of private labels: their tables, stages and final models, as data.

One noised code of each label, in one round or two; labels without privacy, beside
them; and private numbers instead of labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from curvote.chain.axis import EPSILON, PipelineSettings
from curvote.chain.stage import FILE, ROWS, TEXT, VECTOR, Stage, Table
from curvote.chain.system import MessageDescription, Part, System, View
from curvote.messages.measures import CLEAN, LEARNER
from curvote.systems.common import declarations
from curvote.systems.common.models import record_columns, unpack_model
from curvote.systems.labels import messages, metrics, settings

if TYPE_CHECKING:
    from curvote.systems.labels.method.classifier import LabelClassifier


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
# What the server says of records whose labels it has no code of: of private words a
# row for each, one after the other.
PREDICTIONS: Final = Table(
    "said", {"record": TEXT, "place": "int64", "confidence": "float64"}, unit="number"
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


_NUMBER = {"record": TEXT, "value": "float64"}
# What the clients of the histogram sent, of those to learn from, and of the score.
HISTOGRAM_NUMBERS: Final = Table("shape_numbers", {"value": "float64"})
NUMBERS: Final = Table("numbers", _NUMBER)
HOLDOUT_NUMBERS: Final = Table("held_numbers", _NUMBER)
# What the server says of records whose numbers it has not heard of.
FORECAST: Final = Table(
    "forecast", {"record": TEXT, "value": "float64", "mean": "float64"}, unit="number"
)


def final_model(view: View) -> LabelClassifier:
    """Return the classifier of the first repetition."""
    # scikit-learn takes a second
    from curvote.systems.labels.method.classifier import LabelClassifier

    model = unpack_model(view.columns("train", "kept")["model"][0])
    reduction = unpack_model(view.columns("features", "reduction")["model"][0])
    metadata = view.metadata("features")
    texts, private = metadata.get("categories"), metadata["public"].get("private")
    libraries = settings.image_libraries(view.settings)
    columns = record_columns(view, "features")
    return LabelClassifier(columns, reduction, model, texts, private, libraries)


def production_metrics(view: View) -> dict[str, float]:
    """Return the number of codes, and the accuracy by held-out ones."""
    scores = view.columns("train", "honest")
    metrics = {"codes": float(view.count("privatize"))}
    for at in np.flatnonzero(scores["scoring"] == "accuracy"):
        metrics |= {"accuracy": float(scores["value"][at])}
        metrics |= {"accuracy_se": float(scores["se"][at])}
    return metrics


_STAGES = "curvote.systems.labels.stages"
_AXES = ("epsilon", "learner")
_WHO = ("clients", "source.groups", "seed")
WORDS = ("public.columns", "public.bins")
LEARNERS = ("curvote.systems.labels.learners.registry:LEARNERS", "learner.name")
LIBRARIES = ("scikit-learn", "scipy", "skops")

FEATURES_OF = Stage(
    "features",
    f"{_STAGES}:features",
    inputs=("ingest",),
    params=tuple(f"public.{name}" for name in settings.Public.model_fields),
    tables=(FEATURES, REDUCTION),
    libraries=LIBRARIES,
    extras=settings.image_libraries,
    files=settings.vector_files,
)
GRAPH_OF = Stage(
    "graph",
    f"{_STAGES}:graph",
    inputs=("features",),
    params=("graph",),
    tables=(GRAPH,),
    libraries=LIBRARIES,
    block=1,
)
PRIVATIZE = Stage(
    "privatize",
    f"{_STAGES}:privatize",
    inputs=("ingest",),
    axes=("epsilon",),
    params=("epsilon", "labels.encoder", *WORDS, *declarations.ROLE_PARAMS),
    tables=(CODES,),
    side="client -> server",
)
TRAIN = Stage(
    "train",
    f"{_STAGES}:train",
    inputs=("features", "graph", "privatize"),
    axes=_AXES,
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
    f"{_STAGES}:score",
    ("ingest", "train"),
    _AXES,
    ("source", *WORDS, *declarations.ROLE_PARAMS),
    plugins=(declarations.DATASETS,),
)
SCORE = replace(_SCORE, tables=(*_SCORE.tables, RELIABILITY, RECALLS))
_RELEASED = replace(
    PRIVATIZE,
    module=f"{_STAGES}:release",
    params=(
        *("epsilon", "protocol", "labels.encoder", "source.classes"),
        *("source.private", *WORDS, *_WHO),
    ),
    message=messages.ASKS,
    collected=f"{_STAGES}:collect_codes",
)


def normalize(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings, with whether a graph of the records is needed.

    What settings leave to their defaults may be left out here: no release reads it.
    """
    from curvote.systems.labels.learners.factory import needs_graph  # scikit-learn

    return values | {"graph": needs_graph(values.get("learners", ()))}


def single_part(pipeline: PipelineSettings) -> tuple[Part, ...]:
    """Return the settings as they are."""
    return (Part(pipeline),)


def resolve_parts(pipeline: PipelineSettings) -> tuple[Part, ...]:
    """Return the settings as one part; two rounds are another chain of that name."""
    if pipeline.labels.rounds == 1:
        return single_part(pipeline)
    update = {"protocol": messages.TWO_ROUNDS, "label": pipeline.called}
    return (Part(pipeline.model_copy(update=update)),)


_PAGE = "curvote.systems.labels.page.sections"

SYSTEM = System(
    name="labels",
    settings=settings.LabelSettings,
    stages=(declarations.INGEST, FEATURES_OF, GRAPH_OF, PRIVATIZE, TRAIN, SCORE),
    production=(declarations.INGEST, FEATURES_OF, GRAPH_OF, _RELEASED, TRAIN),
    axes=(EPSILON, LEARNER),
    messages=messages.MESSAGES_BY_SYSTEM["labels"],
    audit_tasks=messages.tasks_by_level,
    metrics=metrics.METRICS,
    methods=metrics.METHODS,
    main=tuple(method.name for method in metrics.METHODS),
    checks=settings.check_settings,
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

_FIRST = replace(
    PRIVATIZE,
    module=f"{_STAGES}:first_round",
    params=("epsilon", *declarations.ROLE_PARAMS),
)
_LEARN = replace(
    TRAIN,
    name="learn",
    module=f"{_STAGES}:learn",
    params=("learner", "labels.calibrate", "labels.decide", "seed", "replicates"),
    tables=(PRIORS,),
)
_AGAIN = replace(
    _FIRST,
    name="again",
    module=f"{_STAGES}:second_round",
    inputs=("ingest", "learn"),
    axes=_AXES,
)
_TRAIN_ON_ROUNDS = replace(
    TRAIN,
    module=f"{_STAGES}:train_on_rounds",
    inputs=("features", "graph", "privatize", "learn", "again"),
)
# What the first round says is likely narrows what the second asks (LP-2ST).
_TWO_ROUNDS = replace(
    SYSTEM,
    name=messages.TWO_ROUNDS,
    stages=(
        *(declarations.INGEST, FEATURES_OF, GRAPH_OF),
        *(_FIRST, _LEARN, _AGAIN, _TRAIN_ON_ROUNDS, SCORE),
    ),
    production=(),
    messages=messages.MESSAGES_BY_SYSTEM[messages.TWO_ROUNDS],
    audit_tasks=messages.tasks_of_two_rounds,
    resolve_parts=single_part,
)


def describe_label(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return the description of the one thing that would be sent: the label."""
    who, what = "every client who trains", "its label, as it is"
    return [MessageDescription(who, what, "none", epsilon="no privacy")]


_SCORE_CLEAN = declarations.score_stage(
    f"{_STAGES}:score_clean",
    ("ingest", "features", "graph"),
    axes=("learner",),
    params=("learner", "labels.decide", "labels.calibrate", *declarations.ROLE_PARAMS),
    plugins=(LEARNERS,),
    libraries=LIBRARIES,
    block=1,
)
# No model is kept: it would be fitted on what no client ever sends.
_CLEAN_LABELS = System(
    name="labels_clean",
    settings=settings.CleanSettings,
    stages=(declarations.INGEST, FEATURES_OF, GRAPH_OF, _SCORE_CLEAN),
    axes=(LEARNER,),
    x=EPSILON,
    audit_tasks=lambda pipeline, read: (),
    study_messages=(describe_label,),
    metrics=metrics.METRICS,
    methods=(CLEAN,),
    main=(CLEAN.name,),
    checks=settings.check_learning,
    normalize=normalize,
)


_NOISED = ("epsilon", "labels_regression.randomizer")

_PRIVATIZE_NUMBERS = Stage(
    "privatize",
    f"{_STAGES}:privatize_numbers",
    inputs=("ingest",),
    axes=("epsilon",),
    params=(
        *(*_NOISED, "labels_regression.share", "labels_regression.holdout"),
        *declarations.ROLE_PARAMS,
    ),
    tables=(HISTOGRAM_NUMBERS, NUMBERS, HOLDOUT_NUMBERS),
    side="client -> server",
)
_TRAIN_ON_NUMBERS = Stage(
    "train",
    f"{_STAGES}:train_on_numbers",
    inputs=("features", "privatize"),
    axes=_AXES,
    params=("learner", *_NOISED, "seed", "replicates"),
    tables=(FORECAST, HONEST),
    side="server",
    libraries=("scikit-learn", "scipy"),
)
_SCORE_NUMBERS = declarations.score_stage(
    f"{_STAGES}:score_numbers",
    ("ingest", "features", "train"),
    _AXES,
    ("learner", *declarations.ROLE_PARAMS),
    libraries=("scikit-learn", "scipy"),
)


def describe_numbers(config: Mapping[str, Any], d: int) -> list[MessageDescription]:
    """Return descriptions of what leaves a client; so far only a study draws it."""
    randomizer = str(config["labels_regression"]["randomizer"])
    who, what = "every client who trains", "one noised number"
    detail = "once: for a histogram, for the model or for its score"
    return [MessageDescription(who, what, randomizer, detail)]


_REGRESSION = System(
    name="labels_regression",
    settings=settings.RegressionSettings,
    stages=(
        declarations.INGEST,
        FEATURES_OF,
        _PRIVATIZE_NUMBERS,
        _TRAIN_ON_NUMBERS,
        _SCORE_NUMBERS,
    ),
    axes=(EPSILON, LEARNER),
    study_messages=(describe_numbers,),
    metrics=metrics.REGRESSION_METRICS,
    methods=metrics.REGRESSION_METHODS,
    main=(metrics.REGRESSION.name,),
    checks=settings.check_regression,
    shorthand=("randomizer", "share", "holdout"),
    sections=(declarations.DATA_SET, f"{_PAGE}:gather_features"),
)

SYSTEMS: Final = (SYSTEM, _TWO_ROUNDS, _CLEAN_LABELS, _REGRESSION)
