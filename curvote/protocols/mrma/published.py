"""Scores as MRMA's tables 1 and 2 print them, to check those tables and for no more.

The paper defines none of them. Of the readings tried, these agree with the tables on
real data; the plain ones do not: ``voting`` has the spread of an
estimate, ``published_mr_error`` is up to 4 points below a mean over all,
``published_voting_error`` up to 10 points too high.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def published_weak_error(utility: Array) -> float:
    """Return 1 minus the mean of the clipped estimated utilities [B]."""
    return float(1 - np.clip(utility, 0, 1).mean())


def published_mr_error(error: Array, utility: Array, cutoff: float) -> float:
    """Return the mean error [B] of reversed classifiers that pass ``cutoff``.

    ``utility`` [B] is estimated, after reversal. Where none passes, the mean of all.
    """
    passed = utility > cutoff
    return float(error[passed].mean() if passed.any() else error.mean())


def published_voting_error(signs: Array, labels: Array) -> float:
    """Return the error of the majority of ``signs`` [n, B]; a tie is an error."""
    return float(np.mean(np.sign(signs.sum(axis=1)) != labels))
