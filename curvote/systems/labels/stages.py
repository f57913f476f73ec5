"""Stages of private labels and numbers: features, codes, models, scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.chain.stage import Columns, Inputs, Metadata, Params, Rows, StageContext
from curvote.data import lookup
from curvote.messages.measures import CLEAN, MAJORITY
from curvote.messages.message import ClientData
from curvote.messages.roles import Roles, roles_of_table
from curvote.messages.stages import collect, collect_metadata, task_metadata
from curvote.messages.stages import sending_rows as senders
from curvote.systems.common.models import pack_model, unpack_model
from curvote.systems.common.study import draw_messages, score_table
from curvote.systems.common.tables import columns_of
from curvote.systems.labels import messages, metrics, settings, words
from curvote.systems.labels.codes import encoding
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners import factory
from curvote.systems.labels.learners.base import Learner
from curvote.systems.labels.learners.graph import fit_graph
from curvote.systems.labels.messages import CODE, PRIOR, RECORD, record_names
from curvote.systems.labels.method import features as public_features
from curvote.systems.labels.method import scoring
from curvote.systems.labels.method.classifier import PrivateLabelClassifier
from curvote.systems.labels.method.features import FeatureChoice
from curvote.systems.labels.regression import regressor, targets

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Names = NDArray[Any]


def clients_and_roles(context: StageContext) -> tuple[Columns, Roles]:
    """Return all clients, and the rows of those in each role of a repetition."""
    clients = context.rows("ingest", "clients")
    return clients, roles_of_table(clients, context.params, context.number)


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
    task = messages.Task.from_json(metadata["task"])
    classes = np.asarray(task.classes, dtype=object)
    return Codes(
        table[CODE], classes, task.epsilon, task.encoder, dict(task.params), prior
    )


def record_priors(context: StageContext, names: Names) -> NDArray[np.float64]:
    """Return the priors of some records, (n, K)."""
    table = context.rows("learn", "priors")
    return np.asarray(table[PRIOR][rows_by_name(table[RECORD], names)])


# Fewer held-out codes than that say nothing.
MIN_HOLDOUT = 30


@dataclass(frozen=True, eq=False)
class Records:
    """Public records (n, d) with codes (n,), and ``unlabelled`` (m, d) without."""

    X: Array
    codes: Codes
    unlabelled: Array


def split_records(
    context: StageContext, coded_names: Names, codes: Codes
) -> tuple[Records, Names]:
    """Return the records with the codes of the named, and the names of the others."""
    features = context.rows("features", "features")
    names, values = features[RECORD], features["values"]
    other_rows = rows_without_codes(names, coded_names)
    coded_rows = rows_by_name(names, coded_names)
    return Records(values[coded_rows], codes, values[other_rows]), names[other_rows]


def cell_learner(context: StageContext) -> Learner:
    """Return the learner of a cell, on the stored graph where there is one."""
    setting = context.params["learner"]
    models = context.rows("graph", "graph")["model"]

    def learner_on(place: int) -> Learner:
        learner = factory.make(setting["name"], **setting["params"])
        if len(models) and factory.takes_graph(learner):
            stored = FrozenEstimator(unpack_model(models[place]))
            learner.set_params(spectral=stored)
        return learner

    names = feature_choices(context.inputs["features"].metadata)
    learners = [learner_on(place) for place in range(len(names))]
    return FeatureChoice(names, learners) if len(names) > 1 else learners[0]


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
    records: Records,
    learner: Learner,
    params: Params,
    rng: np.random.Generator,
    private: words.Private = (),
) -> tuple[Any, Columns]:
    """Choose on some codes, score the choice on the rest, and take all for the model.

    The rest have no part in choosing, so their score is honest; the model of the same
    choice from all codes is, if anything, better. Comes with the table ``honest``, a
    row for each scoring: none of too few codes.
    """
    seed = int(rng.integers(2**31))
    codes, rows = records.codes, np.flatnonzero(scoring.unbiased_rows(records.codes))
    size = min(round(params["labels.holdout"] * len(codes)), len(rows) // 2)
    holdout = np.sort(rng.permutation(rows)[:size])
    kinds = {"scoring": object} | dict.fromkeys(encoding.Score._fields, np.float64)
    kinds |= {"n": np.int64}
    if len(holdout) < MIN_HOLDOUT:
        return fit_model(records, learner, params, seed), columns_of([], kinds)
    rest = np.setdiff1d(np.arange(len(codes)), holdout)
    unlabelled = np.concatenate([records.unlabelled, records.X[holdout]])
    part = Records(records.X[rest], codes[rest], unlabelled)
    chosen = fit_model(part, learner, params, seed)
    X, holdout_codes = records.X[holdout], codes[holdout]
    predictions = encoding.predictions_of(chosen, X, holdout_codes)
    scorings: dict[str, scoring.Scoring] = {name: name for name in scoring.SCORINGS}
    if private:
        scorings = scoring.word_scorings(chosen, X, private)
    scores: list[tuple[Any, ...]] = []
    for name, how in scorings.items():
        score = scoring.score_predictions(predictions, X, holdout_codes, how)
        scores.append((name, *score, len(holdout)))
    final = fit_model(records, chosen.learner_.fixed(), params, seed)
    return final, columns_of(scores, kinds)


STANDARD, AUTO = "standard", "auto"


def features_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the source's metadata, and what is done with its features."""
    source, option = inputs["ingest"].metadata, params["public.scale"]
    kind, path = params["public.features"], vector_path(params)
    if path is not None:
        vectors = public_features.read_vectors(path)[1]
        ends = {"lower": vectors.min(axis=None), "upper": vectors.max(axis=None)}
        numbers = [{"name": name, "unit": "", **ends} for name in vectors]
        grid = [*range(len(numbers))]
        source = {**source, "features": numbers, "grid": grid, "categories": None}
    features = source.get("features") or ()
    private = messages.source_private(inputs, params)
    public = [features[at] for at in words.public_places(private, len(features))]
    # By itself, if numbers differ in kind.
    kinds = {
        (feature["unit"], feature["lower"], feature["upper"]) for feature in public
    }
    done = {
        "scale": option == STANDARD or (option == AUTO and len(kinds) > 1),
        "reduce": params["public.reduce"],
        "size": params["public.size"],
        **({"private": private} if private else {}),
    }
    if kind or params["public.deskew"]:
        done |= {"features": kind, "deskew": params["public.deskew"]}
    return {**source, "public": done}


def vector_path(params: Params) -> Path | None:
    """Return the file of public vectors that stands for the records' features."""
    named = (params["public.features"] or "").removeprefix(settings.EMBEDDING)
    return Path(path) if (path := params.get("raw.paths", {}).get(named)) else None


def features(context: StageContext) -> Rows:
    """Return the tables ``features`` and ``reduction``, of all records together."""
    clients, done = context.rows("ingest", "clients"), context.metadata["public"]
    names, path = record_names(clients), vector_path(context.params)
    values = clients["curve"].astype(np.float64)
    if "private" in done:
        values = values[:, words.public_places(done["private"], values.shape[1])]
    if path is not None:
        values = public_features.vectors_of(path, [*map(str, names)])
    reduction = public_features.reduction_of(done, values)
    if reduction != "passthrough":
        values = reduction.fit_transform(values)
    return {
        "features": {RECORD: names, "values": values},
        "reduction": {"model": pack_model(reduction)},
    }


def graph(context: StageContext) -> Rows:
    """Return the table ``graph`` of all records; nothing where no learner takes it.

    Of features among which codes will choose, a graph each.
    """
    if not context.params["graph"]:
        return {"graph": {"model": np.empty(0, dtype=object)}}
    values = context.rows("features", "features")["values"]
    metadata = context.inputs["features"].metadata
    n_classes = len(metadata["classes"]) * words.count_words(private_of(context))
    parts = np.split(values, len(feature_choices(metadata)), axis=1)
    graphs = [pack_model(fit_graph(part, n_classes)) for part in parts]
    return {"graph": {"model": np.concatenate(graphs)}}


def feature_choices(metadata: Metadata) -> tuple[str, ...]:
    """Return the names of the features among which codes choose; one: no choice."""
    kind = metadata["public"].get("features")
    return public_features.CANDIDATES if kind == AUTO else (kind,)


privatize_task = messages.task_of


def privatize_metadata(inputs: Inputs, params: Params) -> Metadata:
    """Return the published task: all of it is public."""
    return task_metadata(messages.task_of(inputs, params))


def draw_codes(
    kind: messages.CodeMessage, context: StageContext, priors: Columns | None = None
) -> Rows:
    """Return the codes of those who send one kind of message in a study."""
    task = messages.Task.from_json(context.metadata["task"])
    clients, roles = clients_and_roles(context)
    rows = kind.senders.rows(roles)
    names = record_names(clients)[rows]
    data = client_labels(context, clients, rows, priors or {})
    columns = draw_messages(context, kind, task, data)
    return {kind.table: kind.collect(task, {RECORD: names, **columns})}


privatize = partial(draw_codes, messages.SINGLE_ROUND)


def client_labels(
    context: StageContext, clients: Columns, rows: np.ndarray, public: Columns
) -> ClientData:
    """Return the data of which codes are made: labels, and public columns.

    A label is a joint class where a record has private words.
    """
    nothing, labels = np.empty((len(rows), 0)), clients["label"][rows]
    if private := private_of(context):
        labels = words.joint_places(private, labels, clients["curve"][rows])
    return ClientData(nothing, nothing, labels, public=public)


def private_of(context: StageContext) -> list[dict[str, Any]]:
    """Return the private columns of the source; two rounds have none."""
    if features := context.inputs.get("features"):
        return list(features.metadata["public"].get("private", ()))
    if "public.columns" not in context.params:
        return []
    return messages.source_private(context.inputs, context.params)


release_task = messages.task_of
release_metadata = privatize_metadata


def release(context: StageContext) -> Rows:
    """Return the table ``codes``: noise from the operating system."""
    kind = messages.SINGLE_ROUND
    task = messages.Task.from_json(context.metadata["task"])
    clients = context.rows("ingest", "clients")
    rows = senders(clients, context.params)
    names = record_names(clients)[rows]
    data = client_labels(context, clients, rows, {})
    columns = kind.draw(task, data, SystemEntropy())
    return {kind.table: kind.collect(task, {RECORD: names, **columns})}


collect_codes_task = messages.task_of
collect_codes_metadata = collect_metadata
collect_codes = collect


def train(context: StageContext) -> Rows:
    """Return ``said``, ``honest``, ``shares`` and, the first time, ``model``."""
    table = context.rows("privatize", "codes")
    codes = codes_from_table(context.inputs["privatize"].metadata, table)
    return train_on_codes(context, table[RECORD], codes)


def train_on_codes(context: StageContext, coded_names: Names, codes: Codes) -> Rows:
    """Return the tables of a model from the codes of the named records."""
    records, other_names = split_records(context, coded_names, codes)
    other_features, rng = records.unlabelled, context.generator("train")
    learner = cell_learner(context)
    private = private_of(context)
    n_words = words.count_words(private)
    model, honest = fit_with_holdout(records, learner, context.params, rng, private)
    # What the model says of records without a code, and how sure it is.
    places, confidence = np.empty(0, dtype=np.int64), np.empty(0)
    if len(other_features):
        predictions = word_predictions(model, other_features, n_words)
        places = predictions.places
        confidence = predictions.proba[np.arange(len(places)), places]
        other_names = np.repeat(other_names, len(places) // len(other_names))
    labels = context.inputs["features"].metadata["classes"]
    share, se = encoding.class_shares(codes, n_words)
    is_first = context.number == 0
    model_file = pack_model(model) if is_first else np.empty(0, dtype=object)
    return {
        "said": {RECORD: other_names, "place": places, "confidence": confidence},
        "honest": honest,
        "shares": {"class": np.array(labels, object), "share": share, "se": se},
        "kept": {"model": model_file},
    }


def word_predictions(model: Any, X: Array, n_words: int) -> encoding.Predictions:
    """Return the predictions of labels for each record and word, (n W,)."""
    if n_words == 1:
        predictions: encoding.Predictions = model.predict_both(X)
        return predictions
    by_word = model.predict_given_words(X, n_words)[:, :-1]
    proba = by_word.proba.reshape(-1, by_word.proba.shape[2])
    return encoding.Predictions(by_word.places.ravel(), proba)


def score(context: StageContext) -> Rows:
    """Return the tables ``scores``, ``reliability_table`` and ``recall_table``."""
    clients, roles = clients_and_roles(context)
    tested = roles["test"]
    labels = clients["label"][tested]
    names = record_names(clients)[tested]
    table, private = context.rows("train", "said"), private_of(context)
    n_words = words.count_words(private)
    at = n_words * rows_by_name(table[RECORD][::n_words], names)
    if private:  # what is said to a person who knows the word
        at += words.joint_places(private, np.zeros_like(at), clients["curve"][tested])
    predictions = {name: values[at] for name, values in table.items()}
    rows = [*_model_scores(context, labels, predictions)]
    # The best rule, where the law of the data is known.
    eta = lookup.eta(context.params["source"])
    if eta is not None:
        best = eta(clients["curve"][tested]).argmax(axis=1)
        rows += metrics.score_predictions(metrics.BAYES.name, labels, best)
    classes = list(context.inputs["ingest"].metadata["classes"])
    return {
        **score_table(rows),
        "reliability": metrics.reliability_table(
            predictions["place"] == labels, predictions["confidence"]
        ),
        "recalls": metrics.recall_table(labels, predictions["place"], classes),
    }


def _model_scores(
    context: StageContext, labels: Index, predictions: Columns
) -> Iterator[metrics.ScoreRow]:
    """Yield the scores of the model, and of the class that codes say is largest."""
    method, places = metrics.LABELS.name, predictions["place"]
    yield from metrics.score_predictions(method, labels, places)
    bins = metrics.reliability_table(places == labels, predictions["confidence"])
    gap = np.abs(bins["confidence"] - bins["accuracy"])
    off = float(bins["n"] @ gap / max(1, len(labels)))
    yield method, "ece", off
    table = context.rows("train", "honest")
    for at in np.flatnonzero(table["scoring"] == "accuracy"):
        yield method, "honest", float(table["value"][at])
        yield method, "honest_error", float(table["se"][at])
    elected = np.full(len(labels), np.argmax(context.rows("train", "shares")["share"]))
    yield from metrics.score_predictions(MAJORITY.name, labels, elected)


def score_clean(context: StageContext) -> Rows:
    """Return the table ``scores`` with the rows ``clean``."""
    clients, roles = clients_and_roles(context)
    values = context.rows("features", "features")["values"]
    classes = list(context.inputs["ingest"].metadata["classes"])
    training_rows, tested = roles["train"], roles["test"]
    private = private_of(context)
    joint = words.joint_places(private, clients["label"], clients["curve"])
    names = np.asarray(words.joint_classes(classes, words.words_of(private)), object)
    codes = Codes.plain(names[joint[training_rows]], names)
    seed = int(context.generator("train").integers(2**31))
    records = Records(values[training_rows], codes, values[tested])
    classifier = fit_model(records, cell_learner(context), context.params, seed)
    n_words = words.count_words(private)
    by_word = word_predictions(classifier, values[tested], n_words).places
    predictions = by_word[np.arange(len(tested)) * n_words + joint[tested] % n_words]
    rows = metrics.score_predictions(CLEAN.name, clients["label"][tested], predictions)
    return score_table(rows)


def _round_metadata(
    kind: messages.CodeMessage, inputs: Inputs, params: Params
) -> Metadata:
    classes = inputs["ingest"].metadata["classes"]
    return task_metadata(messages.round_task(kind, classes, params["epsilon"]))


# The published task of each half, and the table ``codes`` of the first.
first_round_metadata = partial(_round_metadata, messages.FIRST_ROUND)
second_round_metadata = partial(_round_metadata, messages.SECOND_ROUND)
first_round = partial(draw_codes, messages.FIRST_ROUND)


def learn(context: StageContext) -> Rows:
    """Return the table ``priors``, of every record that no code is there of."""
    table = context.rows("privatize", "codes")
    codes = codes_from_table(context.inputs["privatize"].metadata, table)
    records, other_names = split_records(context, table[RECORD], codes)
    seed = int(context.generator("learn").integers(2**31))
    classifier = fit_model(records, cell_learner(context), context.params, seed)
    prior = classifier.predict_proba(records.unlabelled)
    return {"priors": {RECORD: other_names, PRIOR: prior}}


def second_round(context: StageContext) -> Rows:
    """Return the table ``codes`` of the second half."""
    clients, roles = clients_and_roles(context)
    names = record_names(clients)[messages.SECOND_ROUND.senders.rows(roles)]
    priors = {PRIOR: record_priors(context, names)}
    return draw_codes(messages.SECOND_ROUND, context, priors)


def train_on_rounds(context: StageContext) -> Rows:
    """Return the tables of stage train; the first round's prior says nothing."""
    early, late = context.rows("privatize", "codes"), context.rows("again", "codes")
    first = codes_from_table(context.inputs["privatize"].metadata, early)
    prior = record_priors(context, late[RECORD])
    second = codes_from_table(context.inputs["again"].metadata, late, prior)
    codes = replace(
        second,
        values=np.concatenate([first.values, second.values]),
        prior=np.concatenate([np.ones((len(first), first.n_classes)), prior]),
    )
    return train_on_codes(context, np.concatenate([early[RECORD], late[RECORD]]), codes)


# A score needs squares without bias.
SCORE_RANDOMIZER = "piecewise"


def public_bounds(context: StageContext) -> tuple[float, float]:
    """Return the public bounds of the number."""
    source = context.inputs.get("features") or context.inputs["ingest"]
    target = source.metadata["target"]
    return target["lower"], target["upper"]


def needs_histogram(context: StageContext) -> bool:
    """Return whether a histogram comes first."""
    name = context.params["labels_regression.randomizer"]
    return targets.randomizer_name(name, context.params["epsilon"]) == targets.ON_BINS


def training_template(context: StageContext, shapes: Array) -> targets.NoisedTargets:
    """Return the empty targets of those to learn from, after ``shapes`` are known."""
    epsilon, prior = context.params["epsilon"], None
    if needs_histogram(context):
        prior = targets.estimate_histogram(shapes, epsilon)
    name = context.params["labels_regression.randomizer"]
    return targets.make_template(public_bounds(context), epsilon, name, prior=prior)


def holdout_template(context: StageContext) -> targets.NoisedTargets:
    """Return the empty targets of those who send for the score."""
    epsilon = context.params["epsilon"]
    return targets.make_template(public_bounds(context), epsilon, SCORE_RANDOMIZER)


Draw = Callable[..., Array]


def privatize_numbers(context: StageContext) -> Rows:
    """Return the tables ``shape_numbers``, ``numbers`` and ``held_numbers``.

    Three parts of the clients, in the random order of their role: nobody is in two.
    """
    clients, roles = clients_and_roles(context)
    training_rows = roles["train"]
    labels = targets.to_unit_interval(
        clients["target"][training_rows], public_bounds(context)
    )
    names, n = record_names(clients)[training_rows], len(training_rows)
    holdout_end = round(context.params["labels_regression.holdout"] * n)
    prior_count = round(context.params["labels_regression.share"] * (n - holdout_end))
    prior_end = holdout_end + prior_count * needs_histogram(context)
    report = partial(targets.report_labels, epsilon=context.params["epsilon"])
    prior_labels = labels[holdout_end:prior_end]
    shapes = _draw_part(context, prior_labels, "shape", report)
    draw_training = training_template(context, shapes).mechanism.randomize
    draw_holdout = holdout_template(context).mechanism.randomize
    return {
        "shape_numbers": {"value": shapes},
        "numbers": {
            RECORD: names[prior_end:],
            "value": _draw_part(context, labels[prior_end:], "learn", draw_training),
        },
        "held_numbers": {
            RECORD: names[:holdout_end],
            "value": _draw_part(context, labels[:holdout_end], "held", draw_holdout),
        },
    }


def _draw_part(context: StageContext, labels: Array, purpose: str, draw: Draw) -> Array:
    """Return the values that one part of the clients sends, by its own streams."""
    values = np.empty(len(labels))
    for rows, entropy in context.noise(len(labels)):
        values[rows] = draw(labels[rows], entropy=entropy.stream_for(purpose))
    return values


def train_on_numbers(context: StageContext) -> Rows:
    """Return the tables ``forecast`` and ``honest``."""
    features = context.rows("features", "features")
    names, X = features[RECORD], features["values"]
    numbers = context.rows("privatize", "numbers")
    holdout = context.rows("privatize", "held_numbers")
    shapes = context.rows("privatize", "shape_numbers")["value"]
    training_targets = replace(
        training_template(context, shapes), values=numbers["value"]
    )
    settings = training_targets.epsilon, training_targets.bounds
    seed = int(context.generator("train").integers(2**31))
    name = context.params["learner"]["name"]
    model = regressor.PrivateLabelRegressor(name, *settings, random_state=seed)
    model.fit(X[rows_by_name(names, numbers[RECORD])], training_targets)
    heard = np.concatenate([numbers[RECORD], holdout[RECORD]])
    other_rows = rows_without_codes(names, heard)
    mean = float(np.clip(training_targets.decode().mean(), *training_targets.bounds))
    forecast = {
        RECORD: names[other_rows],
        "value": model.predict(X[other_rows]),
        "mean": np.full(len(other_rows), mean),
    }
    # The mean squared error by numbers that nothing was learnt from.
    holdout_X = X[rows_by_name(names, holdout[RECORD])]
    judges = replace(holdout_template(context), values=holdout["value"])
    parts = targets.squared_error(model, holdout_X, judges)._asdict().items()
    honest = {
        "scoring": np.array(["squared_error"], dtype=object),
        **{name: np.array([value]) for name, value in parts},
        "n": np.array([len(holdout_X)]),
    }
    return {"forecast": forecast, "honest": honest}


def score_numbers(context: StageContext) -> Rows:
    """Return the table ``scores``."""
    clients, roles = clients_and_roles(context)
    tested = roles["test"]
    y, forecast = clients["target"][tested], context.rows("train", "forecast")
    at = rows_by_name(forecast[RECORD], record_names(clients)[tested])
    honest = context.rows("train", "honest")
    # The same learner, fitted on the numbers themselves.
    training_rows = roles["train"]
    X = context.rows("features", "features")["values"]
    seed = int(context.generator("train").integers(2**31))
    name = context.params["learner"]["name"]
    learner = regressor.make_regressor(name, len(training_rows), seed)
    learner.fit(X[training_rows], clients["target"][training_rows])
    clean = np.clip(learner.predict(X[tested]), *public_bounds(context))
    predictions = {
        metrics.REGRESSION.name: forecast["value"][at],
        metrics.MEAN.name: forecast["mean"][at],
        CLEAN.name: np.asarray(clean),
    }
    rows: list[metrics.ScoreRow] = []
    for method, values in predictions.items():
        square = float(np.mean((values - y) ** 2))
        rows += [(method, metrics.RMSE.name, square**0.5)]
        rows += [(method, metrics.MSE.name, square)]
    columns = {metrics.HONEST_MSE.name: "value", metrics.HONEST_MSE_ERROR.name: "se"}
    for name, column in columns.items():
        rows.append((metrics.REGRESSION.name, name, float(honest[column][0])))
    return score_table(rows)
