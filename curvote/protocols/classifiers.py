"""Tables of classifiers that no learner fitted: the one at the end, or candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.chain.stage import Columns
from curvote.classifier import places_named
from curvote.protocols.mrma.tables import WEAK_VARIANTS
from curvote.server.averaging import average

Array = NDArray[np.float64]
Line = tuple[Array, Any]


def classifier(line: Line, n: int) -> Columns:
    """Return table ``classifier`` of ``n`` reports: one row, or one for each class.

    ``line`` is coef (d,) and intercept of two classes, or (K, d) and (K,) of more.
    """
    coef, intercept = np.atleast_2d(line[0]), np.atleast_1d(line[1])
    return {"coef": coef, "intercept": intercept, "n": np.full(len(coef), n)}


def line_in(rows: Columns) -> Line:
    """Return what `classifier` was made of."""
    coef, intercept = rows["coef"], rows["intercept"]
    if len(coef) == 1:
        return coef[0], float(intercept[0])
    return coef, intercept


def named(features: Array, rows: Columns) -> NDArray[np.int64]:
    """Return the places of classes (n,) that table ``classifier`` names."""
    return places_named(features @ rows["coef"].T + rows["intercept"])


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
