"""What classifiers make that answer questions about classes: one rule for all.

A client judges single ones (`questions`); only the server and a study combine them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.classifier import places_named
from curvote.server.averaging import average

Array = NDArray[np.float64]
Lines = tuple[Array, Array]


def turned(ensemble: Columns) -> Array:
    """Return the weights (B,) of table ``ensemble``, below 0 where it reverses."""
    turn = np.where(ensemble["reversed"], -1.0, 1.0)
    return np.asarray(turn * ensemble["weight"])


def wrong(
    code: Array, tested: tuple[Array, NDArray[Any]], lines: Lines, weights: Array
) -> float:
    """Return how often what `combined` makes errs on ``tested`` features and places."""
    return float(np.mean(said(code, tested[0], lines, weights) != tested[1]))


def said(
    code: Array, features: Array, lines: Lines, weights: Array
) -> NDArray[np.int64]:
    """Return the places (n,) that what `combined` makes says of ``features`` (n, d)."""
    coef, intercept = combined(code, lines, weights)
    return places_named(features @ coef.T + intercept)


def combined(code: Array, lines: Lines, weights: Array) -> Lines:
    """Return the lines (R, d), (R,) that weighted answers to the questions make.

    ``lines`` are coef (B, d) and intercept (B,) of classifiers that answer the
    questions in turn, ``weights`` (B,) negative where one is reversed. One line of two
    classes, their weighted sum (MRMA, equation 11); else a score for each class, the
    sum of what speaks for it less what speaks against it.
    """
    if code.shape[1] == 2:
        coef, intercept = average(*lines, weights)
        return coef[None], np.array([intercept])
    shares = weights[:, None] * code[np.arange(len(weights)) % len(code)]
    return shares.T @ lines[0], shares.T @ lines[1]
