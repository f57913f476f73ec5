"""Optimal weights of servers: the largest ratio of a combined value to its noise.

DTK maximises (w.t)^2 / sum_j w_j^2 s_j over the simplex, for values t of the servers
and their variances s ((19), and its likeness under (21)). For w >= 0 the inequality of
Cauchy and Schwarz gives the maximum among positive w.t, sum_j (t_j)+^2 / s_j at
w_j ~ (t_j)+ / s_j, and likewise among negative ones: no optimiser.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError

FloatArray = NDArray[np.float64]


def best_weights(t: ArrayLike, s: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the largest ratio (...) and the weights (..., m + 1) that reach it.

    ``t`` (..., m + 1) holds the values, ``s``, which is broadcast against it, their
    variances, above 0; infinity takes a server out. Where no value counts (all are 0)
    the ratio is 0 for any weights: they are then proportional to 1/s, to 1 where every
    variance is infinite. Weights are at least 0 and sum to 1. UserError for NaN, an
    infinite value, or a variance that is not above 0.
    """
    values = np.atleast_1d(validate.finite(t=t))
    precision, unit_variance = _precision(values, s)
    largest = np.abs(values).max(axis=-1, keepdims=True)
    # In units of the largest value and the least variance nothing overflows.
    scaled = values / np.where(largest > 0, largest, 1)
    sides = np.maximum(scaled, 0), np.maximum(-scaled, 0)
    ratios = [np.sum(side**2 * precision, axis=-1, keepdims=True) for side in sides]
    numerator = np.where(ratios[0] >= ratios[1], *sides) * precision
    largest_ratio = np.maximum(*ratios)
    finite_precision = precision.any(axis=-1, keepdims=True)
    weights = np.where(
        largest_ratio > 0, numerator, np.where(finite_precision, precision, 1.0)
    )
    ratio = (largest_ratio * (largest / np.sqrt(unit_variance)) ** 2)[..., 0]
    return ratio[()], weights / weights.sum(axis=-1, keepdims=True)


def best_target_weight(
    t: ArrayLike, s: ArrayLike, u: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return ratio and weights for sources in fixed proportions ``u``.

    This is (17) with (19): w_0 is free and w_j = (1 - w_0) u_j / sum(u) for the
    sources, ``u`` (..., m) at least 0 and not all 0; the target comes first in ``t``
    and ``s``. Two values are left to weigh: the target's and the sources' together.
    """
    values = np.atleast_1d(validate.finite(t=t))
    spread = np.broadcast_to(_check_variances(s), values.shape)
    shares = _check_shares(u, values)
    # A source of infinite variance takes the others with it, unless its share is 0.
    noise = shares**2 * np.where(shares > 0, spread[..., 1:], 0)
    ratio, pair = best_weights(
        _with_target(values, np.sum(shares * values[..., 1:], axis=-1)),
        _with_target(spread, np.sum(noise, axis=-1)),
    )
    return ratio, np.concatenate([pair[..., :1], pair[..., 1:] * shares], axis=-1)


def _with_target(values: FloatArray, sources: FloatArray) -> FloatArray:
    """Return the target's value beside the sources' combined one."""
    return np.stack([values[..., 0], sources], axis=-1)


def _check_shares(u: ArrayLike, values: FloatArray) -> FloatArray:
    """Return the proportions of the sources, scaled to sum 1."""
    shares_given = np.atleast_1d(validate.finite(u=u))
    m = values.shape[-1] - 1
    if shares_given.shape[-1] != m or m < 1:
        raise UserError(f"u holds {shares_given.shape[-1]} shares for {m} sources.")
    if (shares_given < 0).any() or not shares_given.any(axis=-1).all():
        raise UserError("u holds a share below 0, or nothing but 0.")
    shares_given = shares_given / shares_given.max(axis=-1, keepdims=True)
    shares = shares_given / shares_given.sum(axis=-1, keepdims=True)
    return np.broadcast_to(shares, (*values.shape[:-1], m))


def _precision(values: FloatArray, s: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return 1/s in units of the largest, and that unit's variance (..., 1)."""
    spread = np.broadcast_to(_check_variances(s), values.shape)
    least = spread.min(axis=-1, keepdims=True)
    unit = np.where(np.isinf(least), 1.0, least)
    return unit / spread, unit


def _check_variances(s: ArrayLike) -> FloatArray:
    """Return the variances; one that is not above 0 is a UserError."""
    variances = np.asarray(s, dtype=np.float64)
    if not (variances > 0).all():  # NaN is none, either
        raise UserError("s holds a variance that is not above 0.")
    return variances
