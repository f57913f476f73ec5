"""Optimal weights of servers: the largest ratio of a combined value to its noise.

DTK maximises (w.t)^2 / sum_j w_j^2 s_j over the simplex, for values t of the servers
and their variances s ((19), and its likeness under (21)). For w >= 0 the inequality of
Cauchy and Schwarz gives the maximum among positive w.t, sum_j (t_j)+^2 / s_j at
w_j ~ (t_j)+ / s_j, and likewise among negative ones: no optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.systems.transfer.method.task import Array, Contrasts, Form


def best_weights(t: ArrayLike, s: ArrayLike) -> tuple[Array, Array]:
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
    unit_variance = np.where(np.isinf(least), 1.0, least)
    precision = unit_variance / spread
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


def best_target_weight(t: ArrayLike, s: ArrayLike, u: ArrayLike) -> tuple[Array, Array]:
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
    sources = np.sum(shares * values[..., 1:], axis=-1)
    ratio, pair = best_weights(
        np.stack([values[..., 0], sources], axis=-1),
        np.stack([spread[..., 0], np.sum(noise, axis=-1)], axis=-1),
    )
    return ratio, np.concatenate([pair[..., :1], pair[..., 1:] * shares], axis=-1)


def _check_shares(u: ArrayLike, values: Array) -> Array:
    """Return the proportions of the sources, scaled to sum 1."""
    shares, m = np.atleast_1d(validate.finite(u=u)), values.shape[-1] - 1
    if shares.shape[-1] != m or m < 1:
        raise UserError(f"u holds {shares.shape[-1]} shares for {m} sources.")
    if (shares < 0).any() or not shares.any(axis=-1).all():
        raise UserError("u holds a share below 0, or nothing but 0.")
    shares = shares / shares.max(axis=-1, keepdims=True)
    shares = shares / shares.sum(axis=-1, keepdims=True)
    return np.broadcast_to(shares, (*values.shape[:-1], m))


def _check_variances(s: ArrayLike) -> Array:
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
    target_difference = _Difference.of(sides[target])
    return [
        Agreement(1.0, 0.0)
        if side is sides[target]
        else _slope_agreement(_Difference.of(side), target_difference)
        for side in sides
    ]


def _slope_agreement(source: _Difference, target: _Difference) -> Agreement:
    """Return a source's slope; infinite se if the target's contrast is noise.

    The variance of <h_j, h_0> is that of independent errors of both; that of |h_0|^2
    counts as far as there is any without a difference.
    """
    if target.energy <= target.energy_se:
        return Agreement(1.0, math.inf)
    product = float((source.rows * target.rows).sum())
    variance = (
        source.along * target.energy
        + target.along * max(source.energy, 0)
        + target.rows.size * target.noise * source.noise
        + target.energy_se**2
    )
    return Agreement(product / target.energy, math.sqrt(variance) / target.energy)


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
    factors = np.array([agreement.counts for agreement in agreements(sides, target)])
    return normalize(precision_weights(sides, target) * factors)


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


def fixed_rule(name: str) -> FixedRule | None:
    """Return the fixed rule of this name, None if it weighs by query."""
    return FIXED.get(validate.one_of([*FIXED, *BY_QUERY], weights=name))


def query_rule(form: Form, name: str) -> Any:
    """Return the class that weighs each query by this rule.

    A rule whose weights hold for all of them leaves it to `STEADY` to choose the
    bandwidth.
    """
    rules = BY_BANDWIDTH if form.by_bandwidth else BY_QUERY
    return rules[name if name in rules else STEADY]


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


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelSide(Contrasts):
    """Centred sums of one server at each bandwidth.

    ``alone`` is the epsilon that one of the bandwidths would have cost at that noise.
    """

    epsilon: float
    alone: float
    widths: tuple[float, ...]
    d: int


@dataclass(frozen=True)
class Adaptive:
    """Lepski's rule for J servers with fixed weights (section 5, remark 5.1).

    ``n`` records each, ``noise`` the variance of T_j, ``epsilon`` and ``alone`` as in
    `KernelSide`, ``widths`` falling, ``target`` the target's place; ``shares`` are
    weights where they are stated.
    """

    n: tuple[int, ...]
    noise: tuple[float, ...]
    epsilon: tuple[float, ...]
    alone: tuple[float, ...]
    widths: tuple[float, ...]
    d: int
    target: int
    shares: tuple[float, ...] | None = None
    # Whether the threshold is that for two servers.
    pooled: ClassVar[bool] = False

    @classmethod
    def of(
        cls, sides: Sequence[KernelSide], target: int, shares: Array | None = None
    ) -> Adaptive:
        """Return the rule for these servers; ``shares`` (J,) hold for all queries."""
        n, noise, epsilon, alone = (
            tuple(getattr(side, name) for side in sides)
            for name in ("n", "noise", "epsilon", "alone")
        )
        weights = None if shares is None else tuple(shares.tolist())
        first = sides[0]
        return cls(n, noise, epsilon, alone, first.widths, first.d, target, weights)

    @property
    def volume(self) -> Array:
        """Volume h^d of a window at each bandwidth, (B, 1)."""
        return np.asarray(np.array(self.widths)[:, np.newaxis] ** self.d)

    @property
    def variance(self) -> Array:
        """Variance of T_j at each bandwidth, (B, J): (18), (21)."""
        sampled = self.volume / (3 * np.array(self.n))
        return np.asarray(sampled + np.array(self.noise))

    @property
    def source_weights(self) -> Array:
        """Unnormalised weights u_j(h) of the servers in (17), (B, J)."""
        n, alone = np.array(self.n), np.array(self.alone)
        return np.asarray(np.minimum(n, (n * alone) ** 2 * self.volume))

    @property
    def threshold(self) -> float:
        """Threshold that a squared ratio must exceed: C ln(2 n* |H|)."""
        constant = 2.25 * (2 if self.pooled else len(self.n))
        star = effective_size(np.array(self.n), np.array(self.epsilon))
        return constant * math.log(2 * star * len(self.widths))

    def weights(self, values: Array) -> Array:
        """Return the stated weights, broadcast to values (B, q, R, J)."""
        shares = np.zeros(len(self.n)) if self.shares is None else np.array(self.shares)
        return np.broadcast_to(shares, values.shape)

    def read(self, values: Array) -> tuple[Array, Array]:
        """Return contrasts (q, R) and weights (q, R, J) from values (B, q, R, J).

        A contrast is the paper's noised T at the bandwidth that is chosen for it: the
        least whose ratio is clear, else that of the largest ratio (Lepski's method).
        """
        weights = self.weights(values)
        noised_sums = (weights * values).sum(axis=-1)
        spread = (weights**2 * self.variance[:, np.newaxis, np.newaxis]).sum(axis=-1)
        ratios = noised_sums**2 / spread
        clear = ratios > self.threshold
        least = len(ratios) - 1 - clear[::-1].argmax(axis=0)
        at = np.where(clear.any(axis=0), least, ratios.argmax(axis=0))[np.newaxis]
        contrasts = np.take_along_axis(
            noised_sums / self.volume[:, :, np.newaxis], at, axis=0
        )
        chosen = np.take_along_axis(weights, at[..., np.newaxis], axis=0)
        return contrasts[0], chosen[0]

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON values."""
        return asdict(self)


class AdaptAll(Adaptive):
    """Adaptive rule with weights over the whole simplex (algorithm 2)."""

    def weights(self, values: Array) -> Array:
        """Return the weights of the largest ratio at each bandwidth and query."""
        return best_weights(values, self.variance[:, np.newaxis, np.newaxis])[1]


class AdaptHomog(Adaptive):
    """Adaptive rule with sources weighted by precision (algorithm 1, (17))."""

    pooled = True

    def weights(self, values: Array) -> Array:
        """Return the weights of the largest ratio between target and pooled sources."""
        among_sources = self.source_weights
        among_sources[:, self.target] = 0
        # A target without sources is all there is.
        among_sources = normalize(among_sources) if len(self.n) > 1 else among_sources
        target_only = np.broadcast_to(
            np.eye(1, len(self.n), self.target), among_sources.shape
        )
        pair = np.stack([target_only, among_sources], axis=1)
        pair_values = np.einsum("bqrj,bpj->bqrp", values, pair)
        spread = np.einsum("bpj,bj->bp", pair**2, self.variance)
        spread = np.maximum(spread, np.finfo(float).tiny)
        _, part = best_weights(pair_values, spread[:, np.newaxis, np.newaxis])
        return np.asarray(np.einsum("bqrp,bpj->bqrj", part, pair))


# Rules that combine the servers' contrasts at each query: `read` returns contrasts
# (q, R) and weights (q, R, J), >= 0 and of sum 1, from values (B, q, R, J).
QueryReading = ByQuery | Adaptive

BY_BANDWIDTH: Mapping[str, type[Adaptive]] = {
    "adapt_all": AdaptAll,
    "adapt_homog": AdaptHomog,
    STEADY: Adaptive,
}
