"""Stages of private numbers: noise, training, and the scores of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy
from curvote.chain.measure import SCORES
from curvote.chain.stage import Rows, StageContext
from curvote.messages.measures import CLEAN
from curvote.messages.roles import roles_of_table
from curvote.systems.labels.labels_regression import system
from curvote.systems.labels.messages import record_names
from curvote.systems.labels.metrics import ScoreRow, score_table
from curvote.systems.labels.regression import regressor
from curvote.systems.labels.regression.noise import (
    ON_BINS,
    estimate_histogram,
    make_template,
    randomizer_name,
    report_labels,
)
from curvote.systems.labels.regression.targets import (
    NoisedTargets,
    squared_error,
    to_unit_interval,
)
from curvote.systems.labels.stages import rows_by_name, rows_without_codes

Array = NDArray[np.float64]
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
    return randomizer_name(name, context.params["epsilon"]) == ON_BINS


def training_template(context: StageContext, shapes: Array) -> NoisedTargets:
    """Return the empty targets of those to learn from, after ``shapes`` are known."""
    params, epsilon = context.params, context.params["epsilon"]
    prior = estimate_histogram(shapes, epsilon) if needs_histogram(context) else None
    name = params["labels_regression.randomizer"]
    return make_template(public_bounds(context), epsilon, name, prior=prior)


def holdout_template(context: StageContext) -> NoisedTargets:
    """Return the empty targets of those who send for the score."""
    epsilon = context.params["epsilon"]
    return make_template(public_bounds(context), epsilon, SCORE_RANDOMIZER)


def with_values(template: NoisedTargets, values: Array) -> NoisedTargets:
    """Return the template's targets with the values that were sent."""
    return replace(template, values=values)


Draw = Callable[[Array, Entropy], Array]


def privatize(context: StageContext) -> Rows:
    """Return the tables ``shape_numbers``, ``numbers`` and ``held_numbers``.

    Three parts of the clients, in the random order of their role: nobody is in two.
    """
    clients = context.rows("ingest", "clients")
    training_rows = roles_of_table(clients, context.params, context.number)["train"]
    labels = to_unit_interval(clients["target"][training_rows], public_bounds(context))
    names, n = record_names(clients)[training_rows], len(training_rows)
    holdout_end = round(context.params["labels_regression.holdout"] * n)
    prior_count = round(context.params["labels_regression.share"] * (n - holdout_end))
    prior_end = holdout_end + prior_count * needs_histogram(context)

    def report(y: Array, noise: Entropy) -> Array:
        return report_labels(y, context.params["epsilon"], noise)

    shapes = _draw_part(context, labels[holdout_end:prior_end], "shape", report)
    draw_training = training_template(context, shapes).mechanism.randomize
    draw_holdout = holdout_template(context).mechanism.randomize
    return {
        "shape_numbers": {"value": shapes},
        "numbers": {
            "record": names[prior_end:],
            "value": _draw_part(context, labels[prior_end:], "learn", draw_training),
        },
        "held_numbers": {
            "record": names[:holdout_end],
            "value": _draw_part(context, labels[:holdout_end], "held", draw_holdout),
        },
    }


def _draw_part(context: StageContext, labels: Array, purpose: str, draw: Draw) -> Array:
    """Return the values that one part of the clients sends, by its own streams."""
    values = np.empty(len(labels))
    for rows, noise in context.noise(len(labels)):
        values[rows] = draw(labels[rows], noise.stream_for(purpose))
    return values


def train(context: StageContext) -> Rows:
    """Return the tables ``forecast`` and ``honest``."""
    features = context.rows("features", "features")
    names, X = features["record"], features["values"]
    numbers, holdout = (
        context.rows("privatize", it) for it in ("numbers", "held_numbers")
    )
    shapes = context.rows("privatize", "shape_numbers")["value"]
    targets = with_values(training_template(context, shapes), numbers["value"])
    settings = context.params["learner"]["name"], targets.epsilon, targets.bounds
    seed = int(context.generator("train").integers(2**31))
    model = regressor.PrivateLabelRegressor(*settings, random_state=seed)
    model.fit(X[rows_by_name(names, numbers["record"])], targets)
    heard = np.concatenate([numbers["record"], holdout["record"]])
    other_rows = rows_without_codes(names, heard)
    mean = float(np.clip(targets.decode().mean(), *targets.bounds))
    forecast = {
        "record": names[other_rows],
        "value": model.predict(X[other_rows]),
        "mean": np.full(len(other_rows), mean),
    }
    # The mean squared error by numbers that nothing was learnt from.
    holdout_X = X[rows_by_name(names, holdout["record"])]
    judges = with_values(holdout_template(context), holdout["value"])
    parts = squared_error(model, holdout_X, judges)._asdict().items()
    honest = {
        "scoring": np.array(["squared_error"], dtype=object),
        **{name: np.array([value]) for name, value in parts},
        "n": np.array([len(holdout_X)]),
    }
    return {"forecast": forecast, "honest": honest}


def score(context: StageContext) -> Rows:
    """Return the table ``scores``."""
    return {SCORES.name: score_table(_score_rows(context))}


def _score_rows(context: StageContext) -> Iterator[ScoreRow]:
    clients = context.rows("ingest", "clients")
    tested = roles_of_table(clients, context.params, context.number)["test"]
    y, forecast = clients["target"][tested], context.rows("train", "forecast")
    at = rows_by_name(forecast["record"], record_names(clients)[tested])
    yield from _error_rows(system.REGRESSION.name, forecast["value"][at] - y)
    yield from _error_rows(system.MEAN.name, forecast["mean"][at] - y)
    yield from _error_rows(CLEAN.name, _clean_predictions(context, tested) - y)
    honest = context.rows("train", "honest")
    for metric, column in (
        (system.HONEST_MSE, "value"),
        (system.HONEST_MSE_ERROR, "se"),
    ):
        yield ScoreRow(system.REGRESSION.name, metric.name, float(honest[column][0]))


def _error_rows(method: str, errors: Array) -> Iterator[ScoreRow]:
    square = float(np.mean(errors**2))
    yield ScoreRow(method, system.RMSE.name, square**0.5)
    yield ScoreRow(method, system.MSE.name, square)


def _clean_predictions(context: StageContext, tested: NDArray[np.int64]) -> Array:
    """Return the predictions of the same learner, fitted on the numbers themselves."""
    clients = context.rows("ingest", "clients")
    training_rows = roles_of_table(clients, context.params, context.number)["train"]
    X = context.rows("features", "features")["values"]
    seed = int(context.generator("train").integers(2**31))
    name = context.params["learner"]["name"]
    learner = regressor.make_regressor(name, len(training_rows), seed)
    learner.fit(X[training_rows], clients["target"][training_rows])
    predictions = np.clip(learner.predict(X[tested]), *public_bounds(context))
    return np.asarray(predictions)
