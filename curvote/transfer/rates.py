"""Radius r of DTK and what follows from it: weights, gains by server, regimes.

Arrays go by server, the target first. (5) is solved for r:

    (n_0 ^ n_0^2 eps_0^2 r^d) r^(2 beta + d)
        + sum_j (n_j ^ n_j^2 eps_j^2 r^d) r^(2 beta gamma_j + d) = 1,

and (11), which has log(2/delta_min) on the right; a ^ b is the less of both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.transfer.phases import (
    Regimes,
    dominant,
    dominant_by_comparison,
    log_risk,
    regimes,
    switches,
)
from curvote.transfer.risks import (
    adaptation_cost,
    adaptive_equal_sources_rate,
    adaptive_rate,
    equal_servers_rate,
    equal_sources_rate,
    excess_risk,
    minimax_rate,
    no_privacy_rate,
)
from curvote.transfer.servers import FloatArray, Mask, Servers, target_level

__all__ = [
    "AddedServer",
    "PublicSource",
    "Regimes",
    "adaptation_cost",
    "adaptive_equal_sources_rate",
    "adaptive_rate",
    "added_server",
    "dominant",
    "dominant_by_comparison",
    "equal_servers_rate",
    "equal_sources_rate",
    "excess_risk",
    "log_risk",
    "minimax_rate",
    "no_privacy_rate",
    "oracle_weights",
    "privacy_limited",
    "public_source",
    "radius",
    "regimes",
    "switches",
    "total_variation",
]


class AddedServer(NamedTuple):
    """Radius r without one server, and with it."""

    without: float
    together: float


class PublicSource(NamedTuple):
    """Corollary 3.3: its case (a, b or c), r by (5), and the ends of case (b).

    From the first end on the private source decides, from the second on its privacy
    costs nothing; the other cases have none.
    """

    case: str
    r: float
    ends: tuple[float, ...]


def radius(  # noqa: PLR0917 - in the order of (5)
    n: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    beta: float,
    d: int,
    delta: ArrayLike | None = None,
) -> float:
    """Return r of (5), with ``delta`` that of (11), the bandwidth of (14).

    ``n`` holds a size for each server, the target first. ``epsilon``, ``gamma`` and
    ``delta`` are one number for all or one for each; an epsilon of infinity is a
    public server, and the target's gamma is 1 whatever stands in its place. beta in
    (0, 1] is the target's smoothness, d the number of features. UserError for sizes
    below 1, for values that are not above 0, and for delta outside (0, 1).
    """
    servers = Servers.of(n, epsilon, gamma, beta, d)
    return servers.radius(target_level(servers.epsilon, delta, servers.n.size))


def oracle_weights(
    n: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    beta: float,
    d: int,
    *,
    h: float,
) -> FloatArray:
    """Return the weights u of (12) at bandwidth ``h``, (m + 1,), of sum 1."""
    servers = Servers.of(n, epsilon, gamma, beta, d)
    log_h = math.log(validate.positive(h=h))
    logs = servers.log_precision(log_h) + servers.gamma * servers.beta * log_h
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def added_server(
    n: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    beta: float,
    d: int,
    *,
    server: int,
    delta: ArrayLike | None = None,
) -> AddedServer:
    """Return r without and with one of the sources, counted from 1.

    Both at the same right-hand side: a server's delta would else cost the others.
    """
    servers = Servers.of(n, epsilon, gamma, beta, d)
    if not 1 <= server < servers.n.size:
        raise UserError(f"server is {server}; sources are 1 to {servers.n.size - 1}.")
    at = target_level(servers.epsilon, delta, servers.n.size)
    remaining = np.arange(servers.n.size) != server
    return AddedServer(servers.only(remaining).radius(at), servers.radius(at))


def privacy_limited(n: ArrayLike, epsilon: ArrayLike, d: int, r: float) -> Mask:
    """Return the mask of servers limited by privacy: S of section 4.2, (m + 1,).

    These are epsilon_j <= (r^d n_j)^(-1/2), whose noise outweighs their sampling.
    """
    servers = Servers.of(n, epsilon, 1.0, 1.0, d)
    limit = (validate.positive(r=r) ** servers.d * servers.n) ** -0.5
    return np.asarray(servers.epsilon <= limit)


def total_variation(
    *,
    n: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    rho: ArrayLike,
    divergence: ArrayLike,
    private: ArrayLike,
) -> float:
    """Return the bound (15) of lemma 1 on the distance of two transcripts.

    For each server ``rho`` is the total variation and ``divergence`` the
    Kullback-Leibler divergence of one record's two laws; ``private`` marks S, whose
    servers are bounded by their privacy, the others by their divergence. At most 1.
    """
    arrays = np.broadcast_arrays(n, epsilon, delta, rho, divergence)
    marked = np.broadcast_to(np.asarray(private, dtype=bool), arrays[0].shape)
    size, budget, leak, distance, _ = (part[marked].astype(float) for part in arrays)
    spent = 6 * size * budget * distance
    if (spent > 1).any():  # that alone bounds by sqrt(2 (e - 1))
        return 1.0
    by_law = np.sum(arrays[0][~marked] * arrays[-1][~marked])
    squared = np.sum(spent * np.expm1(spent)) + by_law
    slack = np.sum(np.exp(spent) * size * leak * distance)
    return float(min(1.0, math.sqrt(2 * squared) + 4 * slack))


def public_source(
    *, n0: int, n1: int, n2: int, epsilon: float, gamma: float, beta: float, d: int
) -> PublicSource:
    """Return corollary 3.3: a public source of n1 records, a private of n2.

    r is that of (5) with an infinite epsilon_1 in all three cases: the first line of
    case (c) is misprinted. The second end of case (b) is, in both of its lines,
    n2^(-beta gamma / (2 beta gamma + d)). UserError where the corollary does not
    speak: n2 <= n0^((2 beta gamma + d) / (2 beta + d)).
    """
    servers = Servers.of([n0, n1, n2], [epsilon, np.inf, epsilon], gamma, beta, d)
    target_power, power = servers.power[:2]
    like_target = float(servers.n[0] ** (power / target_power))
    if n2 <= like_target:
        raise UserError(
            f"n2 is {n2}; corollary 3.3 is for a private source of more than"
            f" {like_target:.4g} records."
        )
    if n1 > n2:
        return PublicSource("a", servers.radius(), ())
    if n1 < like_target:
        return PublicSource("c", servers.radius(), ())
    source = beta * gamma
    ends = float(n1 ** ((source + d) / power) / n2), float(n2 ** (-source / power))
    return PublicSource("b", servers.radius(), ends)
