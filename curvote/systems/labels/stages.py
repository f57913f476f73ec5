"""Stages of private labels, in their order: features, graph, codes, model, scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.data import lookup
from curvote.messages.measures import CLEAN, MAJORITY
from curvote.messages.message import ClientData
from curvote.messages.roles import roles_of_table
from curvote.messages.stages import collect, collect_metadata, task_metadata
from curvote.messages.stages import sending_rows as senders
from curvote.systems.common.model_file import pack_model
from curvote.systems.common.study import draw_messages
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.graph import fit_graph
from curvote.systems.labels.messages import (
    MESSAGES,
    RECORD,
    CodeMessage,
    record_names,
    task_of,
)
from curvote.systems.labels.metrics import (
    BAYES,
    LABELS,
    ScoreRow,
    recall_table,
    reliability_table,
    score_predictions,
    score_table,
)
from curvote.systems.labels.system import cell_learner
from curvote.systems.labels.task import ASKS, Task
from curvote.systems.labels.training import (
    Names,
    Records,
    TrainedModel,
    codes_from_table,
    fit_model,
    fit_with_holdout,
    rows_by_name,
    rows_without_codes,
)

PCA_NAME, STANDARD, AUTO = "pca", "standard", "auto"
_SEED = 0  # what is public may be computed again by everybody


def features_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the source's metadata, and what is done with its features."""
    source = inputs["ingest"].metadata
    done = {
        "scale": is_standardised(source, params["public.scale"]),
        "reduce": params["public.reduce"],
        "size": params["public.size"],
    }
    return {**source, "public": done}


def is_standardised(source: Metadata, option: str) -> bool:
    """Return whether each number is standardised: by itself if they differ in kind."""
    features = source.get("features") or ()
    kinds = {
        (feature["unit"], feature["lower"], feature["upper"]) for feature in features
    }
    return option == STANDARD or (option == AUTO and len(kinds) > 1)


def features(context: StageContext) -> Rows:
    """Return the tables ``features`` and ``reduction``, of all records together."""
    clients, done = context.rows("ingest", "clients"), context.metadata["public"]
    values = clients["curve"].astype(np.float64)
    steps = [*_reduction_steps(values, done)]
    reduction: Any = make_pipeline(*steps) if steps else "passthrough"
    if steps:
        values = reduction.fit_transform(values)
    return {
        "features": {RECORD: record_names(clients), "values": values},
        "reduction": {"model": pack_model(reduction)},
    }


def _reduction_steps(values: Any, done: Metadata) -> Iterator[Any]:
    if done["scale"]:
        yield StandardScaler()
    if done["reduce"] == PCA_NAME:
        _check_component_count(min(values.shape), done["size"], values.shape)
        size = done["size"]
        yield PCA(size, svd_solver="covariance_eigh", random_state=_SEED)


def _check_component_count(most: int, size: int, shape: tuple[int, ...]) -> None:
    if size > most:
        raise UserError(
            f"{size} components of {shape[0]} records with {shape[1]} numbers; at most"
            f" {most} there are.",
            where=("public", "size"),
        )


def graph(context: StageContext) -> Rows:
    """Return the table ``graph`` of all records; nothing where no learner takes it."""
    if not context.params["graph"]:
        return {"graph": {"model": np.empty(0, dtype=object)}}
    values = context.rows("features", "features")["values"]
    classes = context.inputs["features"].metadata["classes"]
    return {"graph": {"model": pack_model(fit_graph(values, len(classes)))}}


privatize_task = task_of


def privatize_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task: all of it is public."""
    return task_metadata(task_of(inputs, params))


def privatize(context: StageContext) -> Rows:
    """Return the table ``codes``."""
    return draw_codes(context, MESSAGES[ASKS])


def draw_codes(
    context: StageContext, kind: CodeMessage, priors: Columns | None = None
) -> Rows:
    """Return the codes of those who send one kind of message in a study."""
    task, clients = (
        Task.from_json(context.metadata["task"]),
        context.rows("ingest", "clients"),
    )
    rows = kind.senders.rows(roles_of_table(clients, context.params, context.number))
    names = record_names(clients)[rows]
    messages = draw_messages(
        context, kind, task, client_labels(clients, rows, priors or {})
    )
    return {kind.table: kind.collect(task, {RECORD: names, **messages})}


def client_labels(clients: Columns, rows: np.ndarray, public: Columns) -> ClientData:
    """Return the data of which codes are made: labels, and public columns."""
    nothing = np.empty((len(rows), 0))
    return ClientData(nothing, nothing, clients["label"][rows], public=public)


def sender_names(context: StageContext, kind: CodeMessage) -> Names:
    """Return the names of the records whose owners send one kind of message."""
    clients = context.rows("ingest", "clients")
    rows = kind.senders.rows(roles_of_table(clients, context.params, context.number))
    return record_names(clients)[rows]


release_task = task_of


def release_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task, which is all that a client obeys."""
    return task_metadata(task_of(inputs, params))


def release(context: StageContext) -> Rows:
    """Return the table ``codes``: noise from the operating system."""
    kind, task = MESSAGES[ASKS], Task.from_json(context.metadata["task"])
    clients = context.rows("ingest", "clients")
    rows = senders(clients, context.params)
    messages = kind.draw(task, client_labels(clients, rows, {}), SystemEntropy())
    return {
        kind.table: kind.collect(
            task, {RECORD: record_names(clients)[rows], **messages}
        )
    }


collect_codes_task = task_of
collect_codes_metadata = collect_metadata
collect_codes = collect


def train(context: StageContext) -> Rows:
    """Return ``said``, ``honest``, ``shares`` and, the first time, ``model``."""
    table = context.rows("privatize", "codes")
    codes = codes_from_table(context.inputs["privatize"].metadata, table)
    return train_on_codes(context, table[RECORD], codes)


def train_on_codes(context: StageContext, coded_names: Names, codes: Codes) -> Rows:
    """Return the tables of a model from the codes of the named records."""
    features = context.rows("features", "features")
    names, values = features[RECORD], features["values"]
    other_rows = rows_without_codes(names, coded_names)
    records = Records(
        values[rows_by_name(names, coded_names)], codes, values[other_rows]
    )
    learner = cell_learner(context)
    trained_model = fit_with_holdout(
        records, learner, context.params, context.generator("train")
    )
    return {
        "said": _prediction_table(trained_model, names[other_rows], records.unlabelled),
        "honest": trained_model.honest_table(),
        "shares": trained_model.share_table(),
        "kept": {
            "model": pack_model(trained_model.model)
            if context.number == 0
            else _NO_MODEL
        },
    }


_NO_MODEL = np.empty(0, dtype=object)


def _prediction_table(
    trained_model: TrainedModel, names: Names, features: np.ndarray
) -> Columns:
    """Return the model's predictions for records without a code, with confidence."""
    if not len(features):
        nothing = np.empty(0, dtype=np.int64)
        return {RECORD: names, "place": nothing, "confidence": np.empty(0)}
    predictions = trained_model.model.predict_both(features)
    sure = predictions.proba[np.arange(len(features)), predictions.places]
    return {RECORD: names, "place": predictions.places, "confidence": sure}


Places = NDArray[np.int64]


def score(context: StageContext) -> Rows:
    """Return the tables ``scores``, ``reliability_table`` and ``recall_table``."""
    clients = context.rows("ingest", "clients")
    tested = roles_of_table(clients, context.params, context.number)["test"]
    labels = clients["label"][tested]
    names = record_names(clients)[tested]
    table = context.rows("train", "said")
    at = rows_by_name(table[RECORD], names)
    predictions = {name: values[at] for name, values in table.items()}
    rows = [
        *_model_scores(context, labels, predictions),
        *_bayes_scores(context, clients["curve"][tested], labels),
    ]
    classes = list(context.inputs["ingest"].metadata["classes"])
    return {
        SCORES.name: score_table(rows),
        "reliability": reliability_table(
            predictions["place"] == labels, predictions["confidence"]
        ),
        "recalls": recall_table(labels, predictions["place"], classes),
    }


def _model_scores(
    context: StageContext, labels: Places, predictions: Columns
) -> Iterator[ScoreRow]:
    """Yield the scores of the model, and of the class that codes say is largest."""
    right = predictions["place"] == labels
    yield from score_predictions(LABELS.name, labels, predictions["place"])
    bins = reliability_table(right, predictions["confidence"])
    gap = np.abs(bins["confidence"] - bins["accuracy"])
    yield ScoreRow(LABELS.name, "ece", float(bins["n"] @ gap / max(1, len(labels))))
    table = context.rows("train", "honest")
    for at in np.flatnonzero(table["scoring"] == "accuracy"):
        yield ScoreRow(LABELS.name, "honest", float(table["value"][at]))
        yield ScoreRow(LABELS.name, "honest_error", float(table["se"][at]))
    elected = int(np.argmax(context.rows("train", "shares")["share"]))
    yield from score_predictions(MAJORITY.name, labels, np.full(len(labels), elected))


def _bayes_scores(
    context: StageContext, records: np.ndarray, labels: Places
) -> Iterator[ScoreRow]:
    """Yield the scores of the best rule, where the law of the data is known."""
    eta = lookup.eta(context.params["source"])
    if eta is not None:
        yield from score_predictions(BAYES.name, labels, eta(records).argmax(axis=1))


def score_clean(context: StageContext) -> Rows:
    """Return the table ``scores`` with the rows ``clean``."""
    clients, values = context.rows("ingest", "clients"), _feature_values(context)
    roles = roles_of_table(clients, context.params, context.number)
    classes = list(context.inputs["ingest"].metadata["classes"])
    training_rows, tested = roles["train"], roles["test"]
    names = np.asarray(classes, dtype=object)
    codes = Codes.plain(names[clients["label"][training_rows]], names)
    seed = int(context.generator("train").integers(2**31))
    records = Records(values[training_rows], codes, values[tested])
    classifier = fit_model(records, cell_learner(context), context.params, seed)
    place = {name: at for at, name in enumerate(classes)}
    predictions = np.array([place[name] for name in classifier.predict(values[tested])])
    rows = score_predictions(CLEAN.name, clients["label"][tested], predictions)
    return {SCORES.name: score_table(rows)}


def _feature_values(context: StageContext) -> np.ndarray:
    return context.rows("features", "features")["values"]
