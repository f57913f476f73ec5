"""Linear classifiers as columns: average, combination and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.curves.encoding import predict_indices
from curvote.learning.votes import average_classifiers
from curvote.systems.common.tables import WEAK_VARIANTS

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


Lines = tuple[Array, Array]


def signed_weights(ensemble: Columns) -> Array:
    """Return the weights (B,) of table ``ensemble``, below 0 where it reverses."""
    signs = np.where(ensemble["reversed"], -1.0, 1.0)
    return np.asarray(signs * ensemble["weight"])


def combined_error(
    code: Array, tested: tuple[Array, NDArray[Any]], lines: Lines, weights: Array
) -> float:
    """Return the share of ``tested`` clients that a combination gets wrong."""
    return float(
        np.mean(combined_predictions(code, tested[0], lines, weights) != tested[1])
    )


def combined_predictions(
    code: Array, features: Array, lines: Lines, weights: Array
) -> NDArray[np.int64]:
    """Return the places (n,) that a combination predicts for ``features``."""
    coef, intercept = combine_lines(code, lines, weights)
    return predict_indices(features @ coef.T + intercept)


def combine_lines(code: Array, lines: Lines, weights: Array) -> Lines:
    """Return the lines (R, d), (R,) of weighted answers to the questions.

    ``lines`` are coef (B, d) and intercept (B,) of classifiers that answer the
    questions in turn, ``weights`` (B,) negative where one is reversed. One line of two
    classes, their weighted sum (MRMA, equation 11); else a score for each class, the
    sum of what speaks for it less what speaks against it.
    """
    if code.shape[1] == 2:
        coef, intercept = average_classifiers(*lines, weights)
        return coef[None], np.array([intercept])
    class_weights = weights[:, None] * code[np.arange(len(weights)) % len(code)]
    return class_weights.T @ lines[0], class_weights.T @ lines[1]
