"""Grid of bandwidths that the paper's rules choose from, from public sizes alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate

Array = NDArray[np.float64]
# Stands for the epsilon of a server that adds no noise.
UNLIMITED = 1e9


def epsilon_value(epsilon: float | str) -> float:
    """Return a level's epsilon as a number, `UNLIMITED` without noise."""
    return UNLIMITED if isinstance(epsilon, str) else epsilon


def effective_size(n: Array, epsilon: Array) -> float:
    """Return the effective sample size n* of section 5."""
    return float(np.minimum(n, (n * epsilon) ** 2).sum())


def bandwidth_grid(
    n: ArrayLike, epsilon: ArrayLike, d: int, first: float = 1.0
) -> list[float]:
    """Return the bandwidths 2^-j, j = 0..floor(ln(n*) / d), times ``first``.

    ``n`` and ``epsilon`` (m + 1,) are public; the logarithm is the natural one. The
    adaptive rules begin at 1, the paper's tuned classifier at 1/2.
    """
    validate.at_least(1, d=d)
    star = effective_size(np.asarray(n, dtype=float), np.asarray(epsilon, dtype=float))
    most = max(0, math.floor(math.log(max(star, 1)) / d))
    return [first * 2.0**-j for j in range(most + 1)]
