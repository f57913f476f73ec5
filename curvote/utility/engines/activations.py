"""Activations of a network between two lines, over an interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from curvote.validate import FloatArray

Envelope = tuple[FloatArray, FloatArray, FloatArray]
Relaxation = Callable[[FloatArray, FloatArray], Envelope]


def relax_identity(low: FloatArray, high: FloatArray) -> Envelope:
    """Return slope, least and largest remainder: the function is the line itself."""
    del high
    zero = np.zeros_like(low)
    return np.ones_like(low), zero, zero


def relax_relu(low: FloatArray, high: FloatArray) -> Envelope:
    """Return slope, least and largest remainder: max(x, 0) - slope x on [low, high]."""
    open_ = (low < 0) & (high > 0)
    width = np.where(open_, high - low, 1.0)
    slope = np.where(open_, high / width, (low >= 0).astype(np.float64))
    return slope, np.zeros_like(low), np.where(open_, -slope * low, 0.0)


def relax_tanh(low: FloatArray, high: FloatArray) -> Envelope:
    """Return slope, least and largest remainder of tanh on [low, high]."""
    return _relax_rising(np.tanh, lambda value: 1 - value * value, low, high)


def relax_logistic(low: FloatArray, high: FloatArray) -> Envelope:
    """Return slope, least and largest remainder of 1/(1 + exp(-x)) on [low, high]."""
    return _relax_rising(expit, lambda value: value * (1 - value), low, high)


def _relax_rising(
    function: Callable[[FloatArray], FloatArray],
    slope_at: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
) -> Envelope:
    """Return slope and remainders of a function whose slope is least at an end.

    Less the smaller slope of the two ends it still rises, so its ends bound it.
    """
    ends = function(low), function(high)
    slope = np.minimum(slope_at(ends[0]), slope_at(ends[1]))
    return slope, ends[0] - slope * low, ends[1] - slope * high


RELAXATIONS: dict[str, Relaxation] = {
    "identity": relax_identity,
    "relu": relax_relu,
    "tanh": relax_tanh,
    "logistic": relax_logistic,
}
