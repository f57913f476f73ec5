"""Metrics and methods of private labels, and the tables of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import Look, Method, Metric
from curvote.chain.stage import Columns
from curvote.messages.measures import MAJORITY

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


Places = NDArray[np.int64]
BINS = 15


class ScoreRow(NamedTuple):
    """A row of the table ``scores``."""

    method: str
    metric: str
    value: float


def score_predictions(
    method: str, labels: Places, predictions: Places
) -> Iterator[ScoreRow]:
    """Yield accuracy and balanced accuracy of a method's predicted places."""
    counts = np.bincount(labels)
    hits = np.bincount(labels[labels == predictions], minlength=len(counts))
    recall = hits[counts > 0] / counts[counts > 0]
    yield ScoreRow(method, ACCURACY.name, float(hits.sum() / len(labels)))
    yield ScoreRow(method, BALANCED.name, float(recall.mean()))


def recall_table(labels: Places, predictions: Places, classes: list[str]) -> Columns:
    """Return the table ``recalls``: tests and recognitions of each class."""
    k = len(classes)
    return {
        "class": np.array(classes, dtype=object),
        "n": np.bincount(labels, minlength=k),
        "recognised": np.bincount(labels[labels == predictions], minlength=k),
        "said": np.bincount(predictions, minlength=k),
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


def score_table(rows: Iterable[ScoreRow]) -> Columns:
    """Return the columns of the table ``scores``."""
    method, metric, value = zip(*rows, strict=True)
    return {
        "method": np.array(method, dtype=object),
        "metric": np.array(metric, dtype=object),
        "value": np.array(value, dtype=np.float64),
    }
