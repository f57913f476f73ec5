"""Formulas of MRMA: noised votes, total variation."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray


def keep_probability(epsilon: float) -> float:
    """Return q = e^epsilon / (1 + e^epsilon), for epsilon > 0 (MRMA, equation 7)."""
    return 1 / (1 + math.exp(-validate.positive(epsilon=epsilon)))


def total_variation(d: int, epsilon_z: float) -> float:
    """Return sup |P(A) - Q(A)|, half the L1 norm, in [0, 1].

    ``d`` >= 1 coordinates, ``epsilon_z`` > 0 for all of them. 1 - P(|U + L| <= 1)^d, U
    uniform on [-1, 1], L Laplace of scale s: what MRMA's figure A.6 plots. P(|U + L| <=
    1) = 1 - E exp(-(1 - U)/s) = 1 - (1 - e^-x)/x with x = 2/s.
    """
    scale = 2 * validate.at_least(1, d=d) / validate.positive(epsilon_z=epsilon_z)
    x = 2 / scale
    return -math.expm1(d * math.log((x + math.expm1(-x)) / x))


Function = Callable[[FloatArray], ArrayLike]

# Panels of the quadrature end so many noise scales from z0.
STEPS = np.array([0.0, 2.0, 8.0, 32.0])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


def omega(z: ArrayLike, z0: ArrayLike, epsilon_z: float) -> FloatArray:
    """Return the weight of a client at z in the law of the label at a noised z0.

    MRMA, equation (5): omega(z | z0) = D(z0 - z) / E D(z0 - Z), D the noise's density
    and Z uniform on [-1, 1], as in figure 1; ``z`` and ``z0`` broadcast,
    0 < epsilon_z < inf. E omega(Z | z0) = 1.
    """
    scale, at = 2 / validate.positive(epsilon_z=epsilon_z), _clip_to_interval(z0)
    kernel = np.exp(-np.abs(validate.finite(z=z) - at) / scale)
    # E exp(-|z0 - Z|/scale) for Z ~ U(-1, 1)
    ends = np.expm1(-(1 + at) / scale) + np.expm1(-(1 - at) / scale)
    return np.asarray(kernel / (-scale * ends / 2))


def noised_eta(
    eta: Function, z0: ArrayLike, epsilon_z: float, keep: float = 1.0
) -> FloatArray:
    """Return eta^(epsilon)(z0), the law of the noised label at a noised z0 [...].

    MRMA, equation (4): 1/2 + (2q - 1) E[omega(Z | z0) (eta(Z) - 1/2)]. ``eta`` maps an
    array of z to P(Y = 1 | z) elementwise, ``keep`` is q in [1/2, 1] (1: the label is
    open), ``epsilon_z`` = inf leaves z open. Gauss-Legendre panels around z0.
    """
    if not 0.5 <= keep <= 1:
        raise UserError(f"keep is {keep!r}; it must lie in [1/2, 1].")
    at = _clip_to_interval(z0)
    if epsilon_z == math.inf:
        return 0.5 + (2 * keep - 1) * (np.asarray(eta(at)) - 0.5)
    scale = 2 / validate.positive(epsilon_z=epsilon_z)
    around = at[..., None] + scale * np.concatenate([-STEPS[:0:-1], STEPS])
    fixed = np.broadcast_to([-1.0, 1.0], (*at.shape, 2))
    edges = np.sort(np.clip(np.concatenate([around, fixed], -1), -1.0, 1.0))
    half = np.diff(edges)[..., None] / 2
    z = edges[..., :-1, None] + half * (1 + _NODES)
    kernel = np.exp(-np.abs(z - at[..., None, None]) / scale)
    averages = [
        (half * _WEIGHTS * (kernel * part)).sum(axis=(-2, -1))
        for part in (np.asarray(eta(z)), np.ones_like(z))
    ]
    bent = averages[0] / averages[1]
    return np.asarray(0.5 + (2 * keep - 1) * (bent - 0.5))


def pointwise_utility(
    eta: Function, z0: ArrayLike, epsilon_z: float, keep: float = 1.0
) -> FloatArray:
    """Return g^(epsilon)(z0): how likely clean and noised labels agree.

    MRMA, equation (3): 1/2 + 2 (eta(z0) - 1/2)(eta^(epsilon)(z0) - 1/2). Below 1/2 the
    noised data mislead at z0. Arguments as in ``noised_eta``; ``eta`` is asked at z0
    itself, also beyond the interval.
    """
    clean = np.asarray(eta(validate.finite(z0=z0))) - 0.5
    return 0.5 + 2 * clean * (noised_eta(eta, z0, epsilon_z, keep) - 0.5)


def _clip_to_interval(z0: ArrayLike) -> FloatArray:
    return np.clip(validate.finite(z0=z0), -1.0, 1.0)
