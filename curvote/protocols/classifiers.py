"""The table of a protocol that ends in one classifier, without an ensemble."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.protocols.stage import Columns, Source

Line = tuple[NDArray[np.float64], float]


def classifier(line: Line, n: int) -> Columns:
    """Return the one row of table ``classifier``: coef (d,), intercept, reports."""
    coef, intercept = line
    return {
        "coef": np.asarray(coef)[None],
        "intercept": np.array([float(intercept)]),
        "n": np.array([n]),
    }


def line_of(source: Source, replicate: int) -> Line:
    """Return (coef, intercept) of a replicate."""
    row = source.columns("classifier", replicate)
    return row["coef"][0], float(row["intercept"][0])
