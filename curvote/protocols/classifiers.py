"""Tables of classifiers that no learner fitted: the one at the end, or candidates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.protocols.mrma.tables import WEAK_VARIANTS
from curvote.server.averaging import average

Array = NDArray[np.float64]
Line = tuple[Array, float]


def classifier(line: Line, n: int) -> Columns:
    """Return the one row of table ``classifier``: coef (d,), intercept, reports."""
    coef, intercept = line
    return {
        "coef": np.asarray(coef)[None],
        "intercept": np.array([float(intercept)]),
        "n": np.array([n]),
    }


def line_in(rows: Columns) -> Line:
    """Return (coef, intercept) of the one row of table ``classifier``."""
    return rows["coef"][0], float(rows["intercept"][0])


def averaged(lines: tuple[Array, Array], ensemble: Columns) -> Line:
    """Return the average of coef (B, d) and intercept (B,), reversed and weighted.

    ``ensemble`` holds the columns ``reversed`` and ``weight`` (B,).
    """
    turn = np.where(ensemble["reversed"], -1.0, 1.0)
    return average(*lines, turn * ensemble["weight"])


def weak_rows(coef: Array, intercept: Array, n: int) -> Columns:
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


def named(features: Array, coef: Array, intercept: Array) -> NDArray[np.int64]:
    """Return the places (n,) that a line of two classes, or scores of K, name."""
    scores = features @ coef.T + intercept
    if len(coef) == 1:
        return np.asarray(scores[:, 0] > 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1))
