"""Accuracy, recall and calibration of predictions for records with known labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.protocols.labels.methods import ACCURACY, BALANCED

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
