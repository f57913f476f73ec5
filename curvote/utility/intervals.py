"""Intervals of a mean over records: what is drawn, and what is sampled."""

from __future__ import annotations

import math

import numpy as np

from curvote.entropy import SeededEntropy, random_permutation
from curvote.utility.evidence import binomial, bounded
from curvote.utility.measured import Measurement

CONFIDENCE = 0.95


def mean_agreement_interval(
    measured: Measurement, *, sample: bool
) -> tuple[float, float]:
    """Return an interval of the mean agreement of records or population.

    Of these very records: exact evidence has none (both ends are the mean), brackets
    are averaged, and draws are counted together (`binomial.mean_share_interval`). With
    ``sample``, of the population that the records are drawn from
    (`bounded.population_mean_interval`), at the evidence's confidence or .95.
    """
    if sample:
        return _population_interval(measured)
    if measured.evidence == "draws":
        return _drawn_interval(measured)
    return float(measured.lower.mean()), float(measured.upper.mean())


def _population_interval(measured: Measurement) -> tuple[float, float]:
    """Return the interval for the population that the records are sampled of.

    Files are sorted by this or that, and stakes must not know the order: it is dealt
    anew.
    """
    by_draws = measured.evidence == "draws"
    values = (measured.agreement,) * 2 if by_draws else (measured.lower, measured.upper)
    order = random_permutation(len(measured.agreement), SeededEntropy(0))
    low, high = (np.clip(ends[order], 0.0, 1.0) for ends in values)
    confidence = CONFIDENCE if measured.confidence is None else measured.confidence
    down, up = bounded.population_mean_interval(low, high, confidence)
    mean = float(measured.agreement.mean())
    return min(down, mean), max(up, mean)


def _drawn_interval(measured: Measurement) -> tuple[float, float]:
    """Return the interval of drawn shares of these very records.

    Those are combined as independent ones (Zou & Donner 2008).
    """
    if not measured.draw_count:
        return _combined_interval(measured)
    counts = np.rint(measured.agreement * measured.draw_count)
    confidence = CONFIDENCE if measured.confidence is None else measured.confidence
    return binomial.mean_share_interval(counts, measured.draw_count, confidence)


def _combined_interval(measured: Measurement) -> tuple[float, float]:
    """Return the interval of independent shares (Zou & Donner 2008)."""
    middle, n = measured.agreement.mean(), len(measured.agreement)
    down = math.sqrt(np.sum((measured.agreement - measured.lower) ** 2)) / n
    up = math.sqrt(np.sum((measured.upper - measured.agreement) ** 2)) / n
    return max(0.0, float(middle - down)), min(1.0, float(middle + up))
