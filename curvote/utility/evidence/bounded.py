"""The mean of a population from which records were sampled, each with its own share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.validate import FloatArray

# No stake loses more than this part of the wealth.
MOST_LOST = 0.75
MEAN_HALVINGS = 40


def population_mean_interval(
    low: ArrayLike, high: ArrayLike, confidence: float
) -> tuple[float, float]:
    """Return an interval for a population's mean, from n sampled records.

    ``low`` (n,) and ``high`` (n,) bracket each record's value in [0, 1]; both are the
    value itself where that is exact, or an unbiased draw of it. Covers with the
    confidence for every population, without an approximation, at any n: wealth of
    stakes on each record in turn, set by those before it (Waudby-Smith & Ramdas 2024,
    theorem 3). The order of the records must not depend on their values.
    """
    missed = (1 - validate.fraction(confidence=confidence)) / 2
    below, above = _check_shares(low), 1 - _check_shares(high)
    return _lower_end(below, missed), 1 - _lower_end(above, missed)


def _check_shares(values: ArrayLike) -> FloatArray:
    """Return the values, checked to be shares in [0, 1]."""
    shares = validate.finite(values=values)
    if shares.ndim != 1 or not shares.size or shares.min() < 0 or shares.max() > 1:
        raise UserError("values must be shares in [0, 1], one for each record.")
    return shares


def _lower_end(values: FloatArray, missed: float) -> float:
    """Return the largest mean that the wealth refutes as too small."""
    stakes, needed = _bet_sizes(values, missed), -math.log(missed)
    low, high = 0.0, 1.0
    for _ in range(MEAN_HALVINGS):
        middle = (low + high) / 2
        staked = np.minimum(stakes, MOST_LOST / middle)
        wealth = np.cumsum(np.log1p(staked * (values - middle)))
        low, high = (middle, high) if wealth.max() >= needed else (low, middle)
    return low


def _bet_sizes(values: FloatArray, missed: float) -> FloatArray:
    """Return the stake on each record, from mean and variance of those before."""
    n, counts = len(values), np.arange(1, len(values) + 1)
    means = (0.5 + np.cumsum(values)) / (counts + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (counts + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.asarray(np.sqrt(-2 * math.log(missed) / (n * before)))
