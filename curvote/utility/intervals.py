"""Intervals of a mean over records: what is drawn, and what is sampled."""

from __future__ import annotations

import math

import numpy as np

from curvote.utility.measured import Measured
from curvote.validate import FloatArray


def over_records(measured: Measured, *, sample: bool) -> tuple[float, float]:
    """Return an interval of the mean agreement.

    Of these very records: exact evidence has none (both ends are the mean), brackets
    are averaged, and drawn intervals are combined as independent ones (Zou & Donner
    2008). With ``sample``, of the population that the records are drawn from:
    `bernstein`, at the evidence's confidence or .95.
    """
    if sample:
        return bernstein(measured.lower, measured.upper, measured)
    if measured.evidence == "draws":
        return _combined(measured)
    return float(measured.lower.mean()), float(measured.upper.mean())


def _combined(measured: Measured) -> tuple[float, float]:
    middle, n = measured.agreement.mean(), len(measured.agreement)
    down = math.sqrt(np.sum((measured.agreement - measured.lower) ** 2)) / n
    up = math.sqrt(np.sum((measured.upper - measured.agreement) ** 2)) / n
    return max(0.0, float(middle - down)), min(1.0, float(middle + up))


def bernstein(
    lower: FloatArray, upper: FloatArray, measured: Measured
) -> tuple[float, float]:
    """Return the empirical Bernstein interval of independent records' mean.

    Maurer & Pontil (2009), theorem 4, on each side. A drawn share is itself an
    unbiased value in [0, 1] of a sampled record, so it needs nothing more; a bracket's
    ends bound its own mean.
    """
    drawn = measured.evidence == "draws"
    confidence = 0.95 if measured.confidence is None else measured.confidence
    low, high = (measured.agreement,) * 2 if drawn else (lower, upper)
    down, up = (
        (float(low.mean()) - _reach(low, confidence)),
        (float(high.mean()) + _reach(high, confidence)),
    )
    return max(0.0, down), min(1.0, up)


def _reach(values: FloatArray, confidence: float) -> float:
    n = len(values)
    if n < 2:
        return 1.0
    log = math.log(4 / (1 - confidence))
    spread = math.sqrt(2 * float(values.var(ddof=1)) * log / n)
    return spread + 7 * log / (3 * (n - 1))
