"""Combinations of classifiers that answer questions about classes.

A client judges single ones (`questions`); only the server and a study combine them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.classifier import predict_indices
from curvote.server.averaging import average_classifiers

Array = NDArray[np.float64]
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
