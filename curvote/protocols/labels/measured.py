"""Accuracy, recall and calibration of what was said of records with known labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.protocols.labels.methods import ACCURACY, BALANCED

Places = NDArray[np.int64]
BINS = 15


class Score(NamedTuple):
    """A row of the table ``scores``."""

    method: str
    metric: str
    value: float


def judged(method: str, labels: Places, said: Places) -> Iterator[Score]:
    """Yield accuracy and balanced accuracy of what a method says, places of classes."""
    there = np.bincount(labels)
    hit = np.bincount(labels[labels == said], minlength=len(there))
    recall = hit[there > 0] / there[there > 0]
    yield Score(method, ACCURACY.name, float(hit.sum() / len(labels)))
    yield Score(method, BALANCED.name, float(recall.mean()))


def recalls(labels: Places, said: Places, classes: list[str]) -> Columns:
    """Return the table ``recalls``: how often each class was tested, and recognised."""
    k = len(classes)
    return {
        "class": np.array(classes, dtype=object),
        "n": np.bincount(labels, minlength=k),
        "recognised": np.bincount(labels[labels == said], minlength=k),
        "said": np.bincount(said, minlength=k),
    }


def reliability(right: NDArray[np.bool_], sure: NDArray[np.float64]) -> Columns:
    """Return the table ``reliability``: what was claimed in each bin, and what held."""
    place = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    n = np.bincount(place, minlength=BINS)
    most = np.maximum(n, 1)
    return {
        "low": np.arange(BINS) / BINS,
        "n": n,
        "confidence": np.bincount(place, sure, BINS) / most,
        "accuracy": np.bincount(place, right, BINS) / most,
    }


def score_table(rows: Iterable[Score]) -> Columns:
    """Return the columns of the table ``scores``."""
    method, metric, value = zip(*rows, strict=True)
    return {
        "method": np.array(method, dtype=object),
        "metric": np.array(metric, dtype=object),
        "value": np.array(value, dtype=np.float64),
    }
