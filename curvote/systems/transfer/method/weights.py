"""Optimal weights of servers: the largest ratio of a combined value to its noise.

DTK maximises (w.t)^2 / sum_j w_j^2 s_j over the simplex, for values t of the servers
and their variances s ((19), and its likeness under (21)). For w >= 0 the inequality of
Cauchy and Schwarz gives the maximum among positive w.t, sum_j (t_j)+^2 / s_j at
w_j ~ (t_j)+ / s_j, and likewise among negative ones: no optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.systems.transfer.method.task import Array, Contrasts, Form

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
    spread = np.broadcast_to(_check_variances(s), values.shape)
    least = spread.min(axis=-1, keepdims=True)
    unit = np.where(np.isinf(least), 1.0, least)
    precision, unit_variance = unit / spread, unit
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


def _check_variances(s: ArrayLike) -> FloatArray:
    """Return the variances; one that is not above 0 is a UserError."""
    variances = np.asarray(s, dtype=np.float64)
    if not (variances > 0).all():  # NaN is none, either
        raise UserError("s holds a variance that is not above 0.")
    return variances


# How far honest servers are from 1: the standard deviation of what is expected.
PRIOR = 0.5


@dataclass(frozen=True)
class Agreement:
    """Slope of a source's contrast on the target's, with standard error ``se``."""

    slope: float
    se: float

    @property
    def counts(self) -> float:
        """Posterior mean slope under N(1, `PRIOR`^2), cut to [0, 1], as a factor.

        Times the odds that they do, 1 at most: that the slope came from N(1, v), not
        from labels turned round, N(-1, v), either as likely before.
        """
        if not math.isfinite(self.se):
            return 1.0
        variance = PRIOR**2 + self.se**2
        mean = 1 + PRIOR**2 / variance * (self.slope - 1)
        stand = 2 / (1 + math.exp(min(-2 * self.slope / variance, 700.0)))
        return min(1.0, max(0.0, mean)) * min(1.0, stand)


def agreements(sides: Sequence[Contrasts], target: int) -> list[Agreement]:
    """Return the agreement of each server with the target; the target's is 1."""
    target_side = sides[target]
    return [
        Agreement(1.0, 0.0)
        if side is target_side
        else _slope_agreement(side, target_side)
        for side in sides
    ]


def _slope_agreement(side: Contrasts, target: Contrasts) -> Agreement:
    """Return a source's slope; infinite se if the target's contrast is noise.

    The variance of <h_j, h_0> is that of independent errors of both; that of |h_0|^2
    counts as far as there is any without a difference.
    """
    source_difference, target_difference = _Difference.of(side), _Difference.of(target)
    if target_difference.energy <= target_difference.energy_se:
        return Agreement(1.0, math.inf)
    product = float((source_difference.rows * target_difference.rows).sum())
    variance = (
        source_difference.along * target_difference.energy
        + target_difference.along * max(source_difference.energy, 0)
        + target_difference.rows.size
        * target_difference.noise
        * source_difference.noise
        + target_difference.energy_se**2
    )
    return Agreement(
        product / target_difference.energy,
        math.sqrt(variance) / target_difference.energy,
    )


@dataclass(frozen=True)
class _Difference:
    """Difference vectors (R, m) of one server, with their error variances.

    ``noise`` is that of a coordinate due to privacy, ``sampling`` that of a query due
    to the number of records, which is also their sum over the coordinates of a row.
    """

    rows: Array
    noise: float
    sampling: float

    @classmethod
    def of(cls, side: Contrasts) -> _Difference:
        """Return the difference vectors of one server's contrasts."""
        scale = side.clear**2
        return cls(side.differences, side.noise / scale, side.sampling / scale)

    @property
    def energy(self) -> float:
        """Squared norm of the differences, corrected for their errors."""
        error_energy = self.rows.size * self.noise + len(self.rows) * self.sampling
        return float((self.rows**2).sum()) - error_energy

    @property
    def energy_se(self) -> float:
        """Standard deviation of `energy` where there is no difference."""
        return math.sqrt(2 * self.rows.size) * self.noise + self.sampling

    @property
    def along(self) -> float:
        """Error variance along one direction."""
        return self.noise + self.sampling


class QueryReading(Protocol):
    """Protocol of a rule that combines the servers' contrasts at each query."""

    def read(self, values: Array) -> tuple[Array, Array]:
        """Return contrasts (q, R) and weights (q, R, J) from values (B, q, R, J).

        B are the bandwidths of the release; weights are >= 0 and sum to 1.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        ...


def normalize(raw: Array) -> Array:
    """Return weights (..., J) scaled to sum 1; equal ones where all are 0."""
    total = raw.sum(axis=-1, keepdims=True)
    equal = np.full_like(raw, 1 / raw.shape[-1])
    return np.asarray(np.divide(raw, total, out=equal, where=total > 0))


def precision_weights(sides: Sequence[Contrasts], target: int) -> Array:
    """Return weights by the inverse variance of each server's `differences`.

    A contrast is p (1 - p) times the difference: its weight is that over the variance.
    """
    return normalize(np.array([side.clear / side.variance for side in sides]))


def aligned_weights(sides: Sequence[Contrasts], target: int) -> Array:
    """Return the precision weights times the agreement with the target."""
    agreement = np.array(
        [
            agreement_of_server.counts
            for agreement_of_server in agreements(sides, target)
        ]
    )
    return normalize(precision_weights(sides, target) * agreement)


def size_weights(sides: Sequence[Contrasts], target: int) -> Array:
    """Return weights by numbers of records (paper 002, section 6.2, AdaptSamp)."""
    return normalize(np.array([float(side.n) for side in sides]))


def target_weights(sides: Sequence[Contrasts], target: int) -> Array:
    """Return weight 1 for the target, 0 for all others (AdaptTar)."""
    return np.asarray(np.eye(1, len(sides), target)[0])


@dataclass(frozen=True)
class ByQuery:
    """Weights of the largest signal-to-noise ratio at each query."""

    variances: tuple[float, ...]
    target: int

    @classmethod
    def of(cls, sides: Sequence[Contrasts], target: int) -> ByQuery:
        """Return the rule for these servers."""
        return cls(tuple(side.variance for side in sides), target)

    def read(self, values: Array) -> tuple[Array, Array]:
        """Return contrasts (q, R) and weights (q, R, J) from values (1, q, R, J)."""
        weights = self.weights(values[0])
        return (weights * values[0]).sum(axis=-1), weights

    def weights(self, values: Array) -> Array:
        """Return weights (q, R, J) of all servers (paper 002, (21))."""
        return best_weights(values, self.variances)[1]

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        return {"variances": list(self.variances), "target": self.target}


class Homogeneous(ByQuery):
    """Weights by query for the target, by precision (17) among the sources."""

    def weights(self, values: Array) -> Array:
        """Return weights (q, R, J): the target's, and the rest by precision."""
        if len(self.variances) == 1:
            return np.ones_like(values)
        order = np.argsort(np.arange(len(self.variances)) != self.target, kind="stable")
        variances = np.array(self.variances)[order]
        weights = np.empty_like(values)
        optimum = best_target_weight(values[..., order], variances, 1 / variances[1:])
        weights[..., order] = optimum[1]
        return weights


FixedRule = Callable[[Sequence[Contrasts], int], Array]

FIXED: Mapping[str, FixedRule] = {
    "precision": precision_weights,
    "aligned": aligned_weights,
    "adapt_samp": size_weights,
    "adapt_tar": target_weights,
}
BY_QUERY = {"adapt_all": ByQuery, "adapt_homog": Homogeneous}


# What a form with several bandwidths calls weights that hold for all queries.
STEADY: Final = ""


def fixed_rule(form: Form, name: str) -> FixedRule | None:
    """Return the fixed rule of this name, None if it weighs by query."""
    rules = import_module(form.rules)
    names = [*rules.FIXED, *rules.BY_QUERY]
    validate.one_of(
        [name_of_rule for name_of_rule in names if name_of_rule != STEADY], weights=name
    )
    rule: FixedRule | None = rules.FIXED.get(name)
    return rule


def query_rule(form: Form, name: str) -> Any:
    """Return the class that weighs each query by this rule.

    A rule whose weights hold for all of them leaves it to `STEADY` to choose the
    bandwidth.
    """
    by_query = import_module(form.rules).BY_QUERY
    return by_query[name if name in by_query else STEADY]
