"""Stages of private labels, in their order: features, graph, codes, model, scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from curvote.systems.common.models import pack_model
from curvote.systems.common.study import draw_messages
from curvote.systems.labels import metrics
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.codes.encoding import Score, mean_score, predictions_of
from curvote.systems.labels.learners.base import Learner
from curvote.systems.labels.learners.graph import fit_graph
from curvote.systems.labels.messages import (
    ASKS,
    CODE,
    MESSAGES,
    PRIOR,
    RECORD,
    CodeMessage,
    Task,
    record_names,
    task_of,
)
from curvote.systems.labels.method.classifier import PrivateLabelClassifier
from curvote.systems.labels.method.scoring import SCORINGS, score_contributions
from curvote.systems.labels.system import cell_learner

Index = NDArray[np.int64]
Names = NDArray[Any]


def rows_by_name(names: Names, requested: Names) -> Index:
    """Return the rows of records by name; one that is not there is a UserError."""
    place = {name: row for row, name in enumerate(names)}
    try:
        return np.array([place[name] for name in requested], dtype=np.int64)
    except KeyError as error:
        message = f"a code is about record {error.args[0]!r}, which has no features."
        raise UserError(message) from None


def rows_without_codes(names: Names, coded: Names) -> Index:
    """Return the rows of the records that have no code."""
    coded_names = set(coded)
    rows = [row for row, name in enumerate(names) if name not in coded_names]
    return np.array(rows, dtype=np.int64)


def codes_from_table(
    metadata: Metadata, table: Columns, prior: NDArray[Any] | None = None
) -> Codes:
    """Return the codes of one round's table, with all that is public about them."""
    task = Task.from_json(metadata["task"])
    classes = np.asarray(task.classes, dtype=object)
    return Codes(
        table[CODE], classes, task.epsilon, task.encoder, dict(task.params), prior
    )


def record_priors(context: StageContext, names: Names) -> NDArray[np.float64]:
    """Return the priors of some records, (n, K)."""
    table = context.rows("learn", "priors")
    return np.asarray(table[PRIOR][rows_by_name(table[RECORD], names)])


Array = NDArray[np.float64]
# Fewer held-out codes than that say nothing.
MIN_HOLDOUT = 30


@dataclass(frozen=True, eq=False)
class Records:
    """Public records (n, d) with codes (n,), and ``unlabelled`` (m, d) without."""

    X: Array
    codes: Codes
    unlabelled: Array


def fit_model(records: Records, estimator: Any, params: Params, seed: int) -> Any:
    """Return the classifier that one learner makes of all codes."""
    classifier = PrivateLabelClassifier(
        estimator=estimator,
        epsilon=records.codes.epsilon,
        encoder=records.codes.encoder,
        classes=records.codes.classes,
        decide=params["labels.decide"],
        calibrate=params["labels.calibrate"],
        random_state=seed,
    )
    unlabelled = records.unlabelled if len(records.unlabelled) else None
    return classifier.fit(records.X, records.codes, unlabelled=unlabelled)


def fit_with_holdout(
    records: Records, learner: Learner, params: Params, rng: np.random.Generator
) -> TrainedModel:
    """Choose on some codes, score the choice on the rest, and take all for the model.

    The rest have no part in choosing, so their score is honest; the model of the same
    choice from all codes is, if anything, better.
    """
    seed = int(rng.integers(2**31))
    # Rows of codes that are unbiased: where a record has a prior, it says nothing.
    codes, rows = records.codes, np.arange(len(records.codes))
    if codes.prior is not None:
        rows = rows[(codes.prior == codes.prior[:, :1]).all(axis=1)]
    size = min(round(params["labels.holdout"] * len(codes)), len(rows) // 2)
    holdout = np.sort(rng.permutation(rows)[:size])
    if len(holdout) < MIN_HOLDOUT:
        return TrainedModel(fit_model(records, learner, params, seed), {}, 0)
    rest = np.setdiff1d(np.arange(len(codes)), holdout)
    unlabelled = np.concatenate([records.unlabelled, records.X[holdout]])
    part = Records(records.X[rest], codes[rest], unlabelled)
    chosen = fit_model(part, learner, params, seed)
    X, holdout_codes = records.X[holdout], codes[holdout]
    predictions, scores = predictions_of(chosen, X, holdout_codes), {}
    for name in SCORINGS:
        values = score_contributions(predictions, X, holdout_codes, name)
        scores[name] = mean_score(values)
    final = fit_model(records, chosen.learner_.fixed(), params, seed)
    return TrainedModel(final, scores, len(holdout))


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Model of all codes, and the scores of its choice by codes held out."""

    model: Any
    scores: dict[str, Score]
    holdout_size: int

    def honest_table(self) -> Columns:
        """Return the table ``honest_table``, a row for each scoring."""
        scores = list(self.scores.values())
        parts = {
            name: np.array([getattr(score, name) for score in scores], dtype=np.float64)
            for name in ("value", "se", "low", "high")
        }
        names = np.array([*self.scores], dtype=object)
        return {"scoring": names, **parts, "n": np.full(len(scores), self.holdout_size)}

    def share_table(self) -> Columns:
        """Return the table ``share_table``."""
        return {
            "class": np.asarray(self.model.classes_, dtype=object),
            "share": self.model.share_,
            "se": self.model.share_se_,
        }


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
    steps: list[Any] = [StandardScaler()] if done["scale"] else []
    if done["reduce"] == PCA_NAME:
        size, most = done["size"], min(values.shape)
        if size > most:
            raise UserError(
                f"{size} components of {len(values)} records with {values.shape[1]}"
                f" numbers; at most {most} there are.",
                where=("public", "size"),
            )
        steps.append(PCA(size, svd_solver="covariance_eigh", random_state=_SEED))
    reduction: Any = make_pipeline(*steps) if steps else "passthrough"
    if steps:
        values = reduction.fit_transform(values)
    return {
        "features": {RECORD: record_names(clients), "values": values},
        "reduction": {"model": pack_model(reduction)},
    }


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
    task = Task.from_json(context.metadata["task"])
    clients = context.rows("ingest", "clients")
    rows = kind.senders.rows(roles_of_table(clients, context.params, context.number))
    names = record_names(clients)[rows]
    data = client_labels(clients, rows, priors or {})
    messages = draw_messages(context, kind, task, data)
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
release_metadata = privatize_metadata


def release(context: StageContext) -> Rows:
    """Return the table ``codes``: noise from the operating system."""
    kind, task = MESSAGES[ASKS], Task.from_json(context.metadata["task"])
    clients = context.rows("ingest", "clients")
    rows = senders(clients, context.params)
    names = record_names(clients)[rows]
    messages = kind.draw(task, client_labels(clients, rows, {}), SystemEntropy())
    return {kind.table: kind.collect(task, {RECORD: names, **messages})}


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
    coded_rows, other_features = rows_by_name(names, coded_names), values[other_rows]
    records = Records(values[coded_rows], codes, other_features)
    learner = cell_learner(context)
    rng = context.generator("train")
    trained = fit_with_holdout(records, learner, context.params, rng)
    # What the model says of records without a code, and how sure it is.
    places, confidence = np.empty(0, dtype=np.int64), np.empty(0)
    if len(other_features):
        predictions = trained.model.predict_both(other_features)
        places = predictions.places
        confidence = predictions.proba[np.arange(len(other_features)), places]
    prediction_table = {
        RECORD: names[other_rows],
        "place": places,
        "confidence": confidence,
    }
    model_file = np.empty(0, dtype=object)
    if context.number == 0:
        model_file = pack_model(trained.model)
    return {
        "said": prediction_table,
        "honest": trained.honest_table(),
        "shares": trained.share_table(),
        "kept": {"model": model_file},
    }


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
    rows = [*_model_scores(context, labels, predictions)]
    # The best rule, where the law of the data is known.
    eta = lookup.eta(context.params["source"])
    if eta is not None:
        best = eta(clients["curve"][tested]).argmax(axis=1)
        rows += metrics.score_predictions(metrics.BAYES.name, labels, best)
    classes = list(context.inputs["ingest"].metadata["classes"])
    return {
        SCORES.name: metrics.score_table(rows),
        "reliability": metrics.reliability_table(
            predictions["place"] == labels, predictions["confidence"]
        ),
        "recalls": metrics.recall_table(labels, predictions["place"], classes),
    }


def _model_scores(
    context: StageContext, labels: Places, predictions: Columns
) -> Iterator[metrics.ScoreRow]:
    """Yield the scores of the model, and of the class that codes say is largest."""
    method, places = metrics.LABELS.name, predictions["place"]
    yield from metrics.score_predictions(method, labels, places)
    bins = metrics.reliability_table(places == labels, predictions["confidence"])
    gap = np.abs(bins["confidence"] - bins["accuracy"])
    off = float(bins["n"] @ gap / max(1, len(labels)))
    yield metrics.ScoreRow(method, "ece", off)
    table = context.rows("train", "honest")
    for at in np.flatnonzero(table["scoring"] == "accuracy"):
        yield metrics.ScoreRow(method, "honest", float(table["value"][at]))
        yield metrics.ScoreRow(method, "honest_error", float(table["se"][at]))
    elected = np.full(len(labels), np.argmax(context.rows("train", "shares")["share"]))
    yield from metrics.score_predictions(MAJORITY.name, labels, elected)


def score_clean(context: StageContext) -> Rows:
    """Return the table ``scores`` with the rows ``clean``."""
    clients = context.rows("ingest", "clients")
    values = context.rows("features", "features")["values"]
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
    rows = metrics.score_predictions(CLEAN.name, clients["label"][tested], predictions)
    return {SCORES.name: metrics.score_table(rows)}
