"""Activations of a network between two lines, over an interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from curvote.validate import FloatArray

Between = tuple[FloatArray, FloatArray, FloatArray]
Relaxed = Callable[[FloatArray, FloatArray], Between]


def identity(low: FloatArray, high: FloatArray) -> Between:
    """Return slope, least and largest remainder: the function is the line itself."""
    del high
    zero = np.zeros_like(low)
    return np.ones_like(low), zero, zero


def relu(low: FloatArray, high: FloatArray) -> Between:
    """Return slope, least and largest remainder: max(x, 0) - slope x on [low, high]."""
    open_ = (low < 0) & (high > 0)
    width = np.where(open_, high - low, 1.0)
    slope = np.where(open_, high / width, (low >= 0).astype(np.float64))
    return slope, np.zeros_like(low), np.where(open_, -slope * low, 0.0)


def tanh(low: FloatArray, high: FloatArray) -> Between:
    """Return slope, least and largest remainder of tanh on [low, high]."""
    return _rising(np.tanh, lambda value: 1 - value * value, low, high)


def logistic(low: FloatArray, high: FloatArray) -> Between:
    """Return slope, least and largest remainder of 1/(1 + exp(-x)) on [low, high]."""
    return _rising(expit, lambda value: value * (1 - value), low, high)


def _rising(
    function: Callable[[FloatArray], FloatArray],
    slope_at: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
) -> Between:
    """Bound a function whose slope has no least value but at an end.

    Less the smaller slope of the two ends it still rises, so its ends bound it.
    """
    ends = function(low), function(high)
    slope = np.minimum(slope_at(ends[0]), slope_at(ends[1]))
    return slope, ends[0] - slope * low, ends[1] - slope * high


RELAXED: dict[str, Relaxed] = {
    "identity": identity,
    "relu": relu,
    "tanh": tanh,
    "logistic": logistic,
}
