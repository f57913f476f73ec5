"""An estimate with its standard error and interval."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from curvote.errors import UserError
from curvote.validate import FloatArray

# The quantile of the normal law that a two-sided interval of 95 % ends at.
Z: Final = 1.959963984540054


class Score(NamedTuple):
    """An estimate, its standard error, and the ends of a 95 % interval.

    None is cut to what the score can be: an accuracy may be above 1 here.

    Parameters
    ----------
    value : float
        The estimate.
    se : float
        Its standard error.
    low, high : float
        The interval.

    Examples
    --------
    >>> score = Score(value=0.8, se=0.01, low=0.78, high=0.82)
    >>> print(f"{score.value} in {score.low} .. {score.high}")
    0.8 in 0.78 .. 0.82
    """

    value: float
    se: float
    low: float
    high: float


def mean_score(values: FloatArray) -> Score:
    """Return the mean of the records' contributions (n,), n >= 2, with its error."""
    if len(values) < 2:
        raise UserError(f"{len(values)} codes have no standard error; give 2 or more.")
    value, se = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    return Score(value, se, value - Z * se, value + Z * se)
