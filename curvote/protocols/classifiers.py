"""Linear classifiers as columns: average, combination and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.classifier import predict_indices
from curvote.protocols.mrma.tables import WEAK_VARIANTS
from curvote.server.averaging import average_classifiers

Array = NDArray[np.float64]
LinearModel = tuple[Array, Any]


def classifier_columns(line: LinearModel, n: int) -> Columns:
    """Return table ``classifier`` of ``n`` reports: one row, or one for each class.

    ``line`` is coef (d,) and intercept of two classes, or (K, d) and (K,) of more.
    """
    coef, intercept = np.atleast_2d(line[0]), np.atleast_1d(line[1])
    return {"coef": coef, "intercept": intercept, "n": np.full(len(coef), n)}


def classifier_line(rows: Columns) -> LinearModel:
    """Return (coef, intercept) of the table ``classifier``."""
    coef, intercept = rows["coef"], rows["intercept"]
    if len(coef) == 1:
        return coef[0], float(intercept[0])
    return coef, intercept


def predict_places(features: Array, rows: Columns) -> NDArray[np.int64]:
    """Return the places (n,) of classes that a table ``classifier`` predicts."""
    return predict_indices(features @ rows["coef"].T + rows["intercept"])


def average_ensemble(lines: tuple[Array, Array], ensemble: Columns) -> LinearModel:
    """Return the weighted average of coef (B, d) and intercept (B,).

    ``ensemble`` holds the columns ``reversed`` and ``weight`` (B,).
    """
    signs = np.where(ensemble["reversed"], -1.0, 1.0)
    return average_classifiers(*lines, signs * ensemble["weight"])


def weak_columns(coef: Array, intercept: Array, n: int) -> Columns:
    """Return the rows of table ``weak``: coef (B, d), intercept (B,), ``n`` reports."""
    count = len(coef)
    return {
        "arm": np.full(count, WEAK_VARIANTS.index("weak"), dtype=np.int8),
        "learner": np.arange(count),
        "coef": coef,
        "intercept": intercept,
        "n": np.full(count, n),
        "flagged": np.zeros(count, dtype=bool),
    }
