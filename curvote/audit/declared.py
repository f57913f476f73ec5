"""Draws against the declared law of a scalar or finite mechanism."""

from __future__ import annotations

import math

import numpy as np

from curvote.audit.bounds import proportion
from curvote.mechanisms.base import ScalarMechanism
from curvote.validate import FloatArray


def cells(
    draws: FloatArray, known: FloatArray, declared: FloatArray, alpha: float
) -> str | None:
    """Say where the share of an output is not its declared probability, if anywhere.

    ``known`` [m] are the outputs, increasing, ``declared`` [m] their probabilities.
    """
    place = np.minimum(np.searchsorted(known, draws), len(known) - 1)
    if (known[place] != draws).any():
        return "an output was drawn that the channel does not name"
    hits = np.bincount(place, minlength=len(known))
    low, high = proportion(hits, len(draws), alpha / (2 * len(known)))
    slack = 1e-12  # declared probabilities are rounded to float64
    wrong = np.flatnonzero((declared < low - slack) | (declared > high + slack))
    if not wrong.size:
        return None
    i = wrong[0]
    share = hits[i] / len(draws)
    return f"output {known[i]:g} has share {share:.4g}, declared {declared[i]:.4g}"


def distance(
    mechanism: ScalarMechanism, x: FloatArray, draws: FloatArray, alpha: float
) -> str | None:
    """Say how far the distribution function is off, if it is.

    Dvoretzky-Kiefer-Wolfowitz with Massart's constant (1990), jumps included.
    """
    at, counts = np.unique(draws, return_counts=True)
    reached = np.cumsum(counts) / draws.size
    below = mechanism.cdf(x, np.nextafter(at, -np.inf))
    gap = max(
        np.abs(reached - mechanism.cdf(x, at)).max(),
        np.abs(reached - counts / draws.size - below).max(),
    )
    if gap <= math.sqrt(math.log(2 / alpha) / (2 * draws.size)):
        return None
    return f"for input {float(x):.3g} the distribution function is off by {gap:.3g}"
