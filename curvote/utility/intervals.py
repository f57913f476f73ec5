"""Intervals of a mean over records: what is drawn, and what is sampled."""

from __future__ import annotations

import math

import numpy as np

from curvote.entropy import SeededEntropy, permutation
from curvote.utility.evidence import binomial, bounded
from curvote.utility.measured import Measured

CONFIDENCE = 0.95


def over_records(measured: Measured, *, sample: bool) -> tuple[float, float]:
    """Return an interval of the mean agreement.

    Of these very records: exact evidence has none (both ends are the mean), brackets
    are averaged, and draws are counted together (`binomial.average`). With ``sample``,
    of the population that the records are drawn from (`bounded.mean`), at the
    evidence's confidence or .95.
    """
    if sample:
        return _sampled(measured)
    if measured.evidence == "draws":
        return _drawn(measured)
    return float(measured.lower.mean()), float(measured.upper.mean())


def _sampled(measured: Measured) -> tuple[float, float]:
    """Return that of the population; a drawn share is an unbiased value of a record.

    Files are sorted by this or that, and stakes must not know the order: it is dealt
    anew.
    """
    drawn = measured.evidence == "draws"
    values = (measured.agreement,) * 2 if drawn else (measured.lower, measured.upper)
    order = permutation(len(measured.agreement), SeededEntropy(0))
    low, high = (np.clip(each[order], 0.0, 1.0) for each in values)
    confidence = CONFIDENCE if measured.confidence is None else measured.confidence
    down, up = bounded.mean(low, high, confidence)
    mean = float(measured.agreement.mean())
    return min(down, mean), max(up, mean)


def _drawn(measured: Measured) -> tuple[float, float]:
    """Return that of drawn shares; of others than plain counts by their intervals.

    Those are combined as independent ones (Zou & Donner 2008).
    """
    if not measured.drawn:
        return _combined(measured)
    counts = np.rint(measured.agreement * measured.drawn)
    confidence = CONFIDENCE if measured.confidence is None else measured.confidence
    return binomial.average(counts, measured.drawn, confidence)


def _combined(measured: Measured) -> tuple[float, float]:
    middle, n = measured.agreement.mean(), len(measured.agreement)
    down = math.sqrt(np.sum((measured.agreement - measured.lower) ** 2)) / n
    up = math.sqrt(np.sum((measured.upper - measured.agreement) ** 2)) / n
    return max(0.0, float(middle - down)), min(1.0, float(middle + up))
