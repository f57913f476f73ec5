"""Stage report of a study: scores by the true numbers of tested records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import SCORES
from curvote.chain.stage import Rows, StageContext
from curvote.labels.regression.learners import make_regressor
from curvote.protocols.labels.measured import ScoreRow, score_table
from curvote.protocols.labels.messages import record_names
from curvote.protocols.labels.records import rows_by_name
from curvote.protocols.labels.regression.asked import public_bounds
from curvote.protocols.labels.regression.methods import (
    HONEST_MSE,
    HONEST_MSE_ERROR,
    MEAN,
    MSE,
    REGRESSION,
    RMSE,
)
from curvote.protocols.non_private.methods import CLEAN
from curvote.protocols.roles import roles_of_table

Array = NDArray[np.float64]


def one(context: StageContext) -> Rows:
    """Return the table ``scores``."""
    return {SCORES.name: score_table(_score_rows(context))}


def _score_rows(context: StageContext) -> Iterator[ScoreRow]:
    clients = context.rows("ingest", "clients")
    tested = roles_of_table(clients, context.params, context.number)["test"]
    y, forecast = clients["target"][tested], context.rows("train", "forecast")
    at = rows_by_name(forecast["record"], record_names(clients)[tested])
    yield from _error_rows(REGRESSION.name, forecast["value"][at] - y)
    yield from _error_rows(MEAN.name, forecast["mean"][at] - y)
    yield from _error_rows(CLEAN.name, _clean_predictions(context, tested) - y)
    honest = context.rows("train", "honest")
    for metric, column in ((HONEST_MSE, "value"), (HONEST_MSE_ERROR, "se")):
        yield ScoreRow(REGRESSION.name, metric.name, float(honest[column][0]))


def _error_rows(method: str, errors: Array) -> Iterator[ScoreRow]:
    square = float(np.mean(errors**2))
    yield ScoreRow(method, RMSE.name, square**0.5)
    yield ScoreRow(method, MSE.name, square)


def _clean_predictions(context: StageContext, tested: NDArray[np.int64]) -> Array:
    """Return the predictions of the same learner, fitted on the numbers themselves."""
    clients = context.rows("ingest", "clients")
    training_rows = roles_of_table(clients, context.params, context.number)["train"]
    X = context.rows("features", "features")["values"]
    seed = int(context.generator("train").integers(2**31))
    learner = make_regressor(
        context.params["learner"]["name"], len(training_rows), seed
    )
    predictions = learner.fit(
        X[training_rows], clients["target"][training_rows]
    ).predict(X[tested])
    return np.asarray(np.clip(predictions, *public_bounds(context)))
