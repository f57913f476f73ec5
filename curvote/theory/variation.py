"""Total variation between the uniform law on a cube and that after Laplace noise.

Z is uniform on [-1, 1]^d and gets Laplace noise of scale 2d/epsilon_z on each
coordinate (MRMA, appendix A.4). The noised density is an average of the uniform one
over shifts, so inside the cube it never exceeds 2^-d: the positive part of p - q is the
cube, and half the L1 norm is exactly the probability to be carried out of it.
"""

from __future__ import annotations

import math

from curvote import validate


def stay_probability(scale: float) -> float:
    """Return P(|U + L| <= 1), U uniform on [-1, 1], L Laplace of ``scale`` > 0.

    1 - E exp(-(1 - U)/scale) = 1 - (1 - e^-x)/x with x = 2/scale.
    """
    x = 2 / validate.positive(scale=scale)
    return (x + math.expm1(-x)) / x


def total_variation(d: int, epsilon_z: float) -> float:
    """Return sup |P(A) - Q(A)|, half the L1 norm, in [0, 1].

    ``d`` >= 1 coordinates, ``epsilon_z`` > 0 for all of them. 1 - P(|U + L| <= 1)^d:
    what MRMA's figure A.6 plots.
    """
    scale = 2 * validate.at_least(1, d=d) / validate.positive(epsilon_z=epsilon_z)
    return -math.expm1(d * math.log(stay_probability(scale)))


def l1_distance(d: int, epsilon_z: float) -> float:
    """Return 2 sup |P(A) - Q(A)|, the whole L1 norm, in [0, 2].

    The convention of MRMA's theorem 4: twice ``total_variation``.
    """
    return 2 * total_variation(d, epsilon_z)


def theorem_4_term(d: int, epsilon_z: float) -> float:
    """Return 3/4 ``l1_distance``, what the move of z adds to the bound of theorem 4."""
    return 0.75 * l1_distance(d, epsilon_z)
