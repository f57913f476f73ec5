"""Sums of many clients' Laplace noise in one draw, for studies only.

It protects nobody: only noise that each client draws itself, with
`DiscreteLaplace.sample`, may leave a client.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.mechanisms.exact import DiscreteLaplace

# The mean count on one side; its spread then stays far below 2^63 as well.
LARGEST_MEAN = 2.0**62


def draw_noise_sums(
    n: int, noise: DiscreteLaplace, size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return ``size`` independent sums of ``n`` draws of ``noise``.

    A discrete Laplace draw is the difference of two geometric ones, P(k) = (1 - a) a^k
    with a = e^-rate, as sum_k (1 - a)^2 a^(2k + |m|) = a^|m| (1 - a)/(1 + a). So the
    sum of n is the difference of two negative binomial ones, each a Poisson count whose
    mean is gamma distributed with shape n and scale a/(1 - a). ``n`` is at least 1.
    Where the mean count n a/(1 - a) exceeds 2^62, 64 bits may not hold it: a UserError.
    """
    count = validate.at_least(1, n=n)
    scale = math.exp(-noise.rate) / -math.expm1(-noise.rate)
    if count * scale > LARGEST_MEAN:
        raise UserError(
            f"n is {n}, and one draw has a scale of {scale:.3g} steps: their sum may"
            f" not fit 64 bits. n times the scale must not exceed {LARGEST_MEAN:.3g}."
        )
    up, down = generator.poisson(generator.gamma(count, scale, (2, size)))
    return np.asarray(up - down, dtype=np.int64)
