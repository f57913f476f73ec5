"""Scores of predicted classes: error, F1 and balanced accuracy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from curvote.chain.measure import SCORES
from curvote.chain.stage import Rows

Codes = NDArray[np.int64]


def class_scores(labels: Codes, predictions: Codes, classes: int) -> dict[str, float]:
    """Return each metric of predictions (n,) for labels (n,), both codes.

    F1 is that of the second of two classes, of more the mean over those that occur (in
    labels or predictions); balanced accuracy is the mean recall of those in labels.
    """
    pairs = np.bincount(labels * classes + predictions, minlength=classes**2)
    counts = pairs.reshape(classes, classes).astype(np.float64)
    correct, actual, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    f1 = np.divide(
        2 * correct,
        actual + predicted,
        out=np.zeros(classes),
        where=actual + predicted > 0,
    )
    return {
        "misclassification": float((len(labels) - correct.sum()) / len(labels)),
        "f1": float(f1[1] if classes == 2 else f1[actual + predicted > 0].mean()),
        "balanced": float((correct[actual > 0] / actual[actual > 0]).mean()),
    }


def score_table(rows: Iterable[tuple[str, str, float]]) -> Rows:
    """Return the table ``scores`` of (method, metric, value)."""
    method, metric, value = zip(*rows, strict=True)
    return {
        SCORES.name: {
            "method": np.array(method, dtype=object),
            "metric": np.array(metric, dtype=object),
            "value": np.array(value, dtype=np.float64),
        }
    }
