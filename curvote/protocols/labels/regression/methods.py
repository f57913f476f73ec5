"""Metrics of private numbers, and the methods that they are of."""

from __future__ import annotations

from typing import Final

from curvote.chain.measure import Look, Method, Metric
from curvote.protocols.non_private.methods import CLEAN

RMSE: Final = Metric(
    "rmse",
    "root mean squared error",
    display="number",
    sentence="is off by {value} (root mean square) on new {record}s",
    words="Root of the mean squared error on new {record}s, in the number's unit",
)
MSE: Final = Metric(
    "mse",
    "mean squared error",
    display="number",
    beside=RMSE.name,
    spread=True,
    words="Mean squared error on new {record}s, in the number's unit squared",
)
HONEST_MSE: Final = Metric(
    "honest_mse",
    "mean squared error by noised numbers alone",
    display="number",
    beside=RMSE.name,
    spread=True,
    words="What the server says itself, from numbers that nothing was learnt from; one"
    " beyond the public bounds counts as lying on them",
)
HONEST_MSE_ERROR: Final = Metric(
    "honest_mse_error",
    "its standard error",
    display="number",
    beside=RMSE.name,
    words="The standard error that the server states with it",
)
METRICS: Final = (RMSE, MSE, HONEST_MSE, HONEST_MSE_ERROR)

REGRESSION: Final = Method(
    "regression",
    "private numbers",
    "A learner trained on public features and one noised number of each client.",
    Look("#0072b2", "o", width=2.4, size=6, above=6),
    rank=610,
)
MEAN: Final = Method(
    "mean_number",
    "mean predictor",
    "The mean of the noised numbers, whatever the features.",
    Look("#8a8f98", "s", (0, (3, 2))),
    rank=620,
)
METHODS: Final = (REGRESSION, MEAN, CLEAN)
