"""Scores as MRMA's tables 1 and 2 print them, to check those tables and for no more.

The paper defines none of them. Of the readings tried, these agree with the tables on
real data; the plain ones do not: ``weak`` has the spread of an estimate, ``mr`` is up
to 4 points below a mean over all, ``voting`` up to 10 points too high.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def weak(utility: Array) -> float:
    """Return 1 minus the mean of the estimated utilities [B], clipped to [0, 1]."""
    return float(1 - np.clip(utility, 0, 1).mean())


def mr(error: Array, utility: Array, cutoff: float) -> float:
    """Return the mean test error [B] of the reversed classifiers that pass ``cutoff``.

    ``utility`` [B] is estimated, after reversal. Where none passes, the mean of all.
    """
    passed = utility > cutoff
    return float(error[passed].mean() if passed.any() else error.mean())


def voting(signs: Array, labels: Array) -> float:
    """Return the error of the majority of ``signs`` [n, B]; a tie is an error."""
    return float(np.mean(np.sign(signs.sum(axis=1)) != labels))
