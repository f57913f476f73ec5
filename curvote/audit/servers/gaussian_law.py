"""The exact (epsilon, delta) of Gaussian noise, calculated a second time.

By the textbook formula and, where it is feasible, by the discrete law itself: neither
is what the product calibrates with.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize, special

Steps = NDArray[np.int64]
# The law of the loss is laid out on so many points at most.
MOST_POINTS = 1 << 20
REACH = 12.0  # standard deviations


def gaussian_delta(epsilon: float, deviation: float) -> float:
    """Return the delta of Gaussian noise at epsilon (Balle & Wang 2018, (6))."""
    ends = deviation / 2 - epsilon / deviation, -deviation / 2 - epsilon / deviation
    first, second = special.log_ndtr(ends)
    return float(math.exp(first) * -math.expm1(min(epsilon + second - first, 0.0)))


def largest_deviation(epsilon: float, delta_limit: float) -> float:
    """Return the largest deviation within (epsilon, delta)."""
    ends = -20.0, math.log(2 * epsilon + 80)
    log_deviation = optimize.brentq(
        lambda log: gaussian_delta(epsilon, math.exp(log)) - delta_limit, *ends
    )
    return math.exp(log_deviation)


def least_epsilon(deviation: float, delta_limit: float) -> float:
    """Return the least epsilon at this delta."""
    if gaussian_delta(0.0, deviation) <= delta_limit:
        return 0.0
    end = deviation * (deviation / 2 + 40)
    root = optimize.brentq(
        lambda e: gaussian_delta(e, deviation) - delta_limit, 0.0, end, xtol=1e-12
    )
    return float(root)


def difference_delta(difference: Steps, sigma: float, epsilon: float) -> float:
    """Return the delta between two vectors under discrete Gaussian noise.

    Exactly where all entries are 0 or of one size c: then the loss is a function of
    the sum of as many draws. Else by the rounding of continuous noise of variance
    sigma^2 - 16 (`gaussian_noise.loss_deviation`).
    """
    sizes = np.unique(np.abs(difference[difference != 0]))
    terms = int(np.count_nonzero(difference))
    points = 2 * REACH * sigma * math.sqrt(terms)
    if sizes.size == 1 and points <= MOST_POINTS:
        return _discrete_delta(int(sizes[0]), terms, sigma, epsilon)
    length = math.sqrt(int(np.dot(difference, difference)))
    return (
        gaussian_delta(epsilon, length / math.sqrt(sigma * sigma - 16))
        if length
        else 0.0
    )


def _discrete_delta(size: int, terms: int, sigma: float, epsilon: float) -> float:
    """Return the exact delta of a sum of discrete Gaussian draws."""
    reach = math.ceil(REACH * sigma * math.sqrt(terms))
    width = int(fft.next_fast_len(2 * reach + 1, real=True))
    at = np.arange(width)
    k = np.where(at > width // 2, at - width, at)
    weights = np.exp(-(k**2) / (2 * sigma * sigma))
    turned = fft.rfft(weights / weights.sum())
    law = np.maximum(fft.irfft(turned**terms, width), 0)
    loss = (2 * size * k + terms * size**2) / (2 * sigma * sigma)
    return float(law @ -np.expm1(np.minimum(epsilon - loss, 0)))
