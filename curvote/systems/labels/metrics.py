"""Metrics and methods of private labels and numbers, and the tables of their scores."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import Look, Method, Metric
from curvote.chain.stage import Columns
from curvote.messages.measures import CLEAN, MAJORITY
from curvote.systems.common import study

ACCURACY: Final = Metric(
    "accuracy",
    "accuracy on new {record}s",
    better="higher",
    sentence="is right on {value} of new {record}s",
    words="Share of new {record}s of which each method says the right class",
)
BALANCED: Final = Metric(
    "balanced_accuracy",
    "balanced accuracy",
    better="higher",
    beside=ACCURACY.name,
    spread=True,
    words="Mean over the classes of the share that is recognised",
)
ECE: Final = Metric(
    "ece",
    "calibration error",
    beside=ACCURACY.name,
    spread=True,
    figure=False,
    words="How far probabilities are from frequencies, mean over 15 bins",
)
HONEST: Final = Metric(
    "honest",
    "accuracy by codes alone",
    better="higher",
    beside=ACCURACY.name,
    spread=True,
    figure=False,
    words="What the server itself says, from codes that took no part in choosing",
)
HONEST_ERROR: Final = Metric(
    "honest_error",
    "standard error of what codes say",
    beside=ACCURACY.name,
    spread=True,
    figure=False,
    words="What the server states with its word on the accuracy",
)
METRICS: Final = (ACCURACY, BALANCED, ECE, HONEST, HONEST_ERROR)

LABELS: Final = Method(
    "labels",
    "private labels",
    "A learner trained on public features and one noised code of each label.",
    Look("#0072b2", "o", width=2.4, size=6, above=6),
    rank=600,
)
BAYES: Final = Method(
    "bayes",
    "Bayes",
    "The best rule there is, by the law that the data are drawn from.",
    Look("#22262b", "", (0, (1, 2)), width=1.2, above=2),
    rank=690,
    study_only=True,
    reference=True,
)
METHODS: Final = (LABELS, MAJORITY, BAYES)

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
REGRESSION_METRICS: Final = (RMSE, MSE, HONEST_MSE, HONEST_MSE_ERROR)

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
REGRESSION_METHODS: Final = (REGRESSION, MEAN, CLEAN)


Places = NDArray[np.int64]
BINS = 15


ScoreRow = tuple[str, str, float]


def score_predictions(
    method: str, labels: Places, predictions: Places
) -> Iterator[ScoreRow]:
    """Yield accuracy and balanced accuracy of a method's predicted places."""
    n_classes = int(max(labels.max(), predictions.max())) + 1
    matrix = study.confusion_matrix(labels, predictions, n_classes)
    yield method, ACCURACY.name, float(np.diag(matrix).sum() / len(labels))
    yield method, BALANCED.name, study.mean_recall(matrix)


def recall_table(labels: Places, predictions: Places, classes: list[str]) -> Columns:
    """Return the table ``recalls``: tests and recognitions of each class."""
    matrix = study.confusion_matrix(labels, predictions, len(classes))
    return {
        "class": np.array(classes, dtype=object),
        "n": matrix.sum(axis=1),
        "recognised": matrix.diagonal().copy(),
        "said": matrix.sum(axis=0),
    }


def reliability_table(
    correct: NDArray[np.bool_], confidence: NDArray[np.float64]
) -> Columns:
    """Return the table ``reliability``: mean confidence and accuracy of each bin."""
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    n = np.bincount(place, minlength=BINS)
    most = np.maximum(n, 1)
    return {
        "low": np.arange(BINS) / BINS,
        "n": n,
        "confidence": np.bincount(place, confidence, BINS) / most,
        "accuracy": np.bincount(place, correct, BINS) / most,
    }
