"""Rates of excess risk (DTK, theorems 3.1 to 5.3), up to constants and at most 1.

``alpha`` >= 0 is the margin's exponent (definition 2.5). Given ``delta`` a rate has its
logarithms at the largest order that the theorem allows; without it none.
"""

import math
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.systems.transfer.method import phases
from curvote.systems.transfer.method.phases import (
    FloatArray,
    Mask,
    Regimes,
    Servers,
    Sizes,
    check_smoothness,
    dominant,
    dominant_by_comparison,
    least_delta,
    log_risk,
    regimes,
    switches,
    target_level,
)
from curvote.systems.transfer.method.weights import bandwidth_grid, effective_size

Delta = ArrayLike | None


def excess_risk(r: float, beta: float, alpha: float = 1.0) -> float:
    """Return the rate of excess risk (6) at radius r: r^(beta (1 + alpha))."""
    return _cap_at_one(validate.positive(r=r) ** _risk_power(beta, alpha))


def minimax_rate(
    n: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    beta: float,
    d: int,
    *,
    delta: Delta = None,
    alpha: float = 1.0,
) -> float:
    """Return the rate of theorem 3.4, of the target alone remark 3.1's.

    Arguments as in `rates.radius`. Without delta it is theorem 4.3's lower rate,
    r^(beta (1 + alpha)) with r of (5); with it theorem 4.2's upper rate, larger by a
    power of log(1/delta_min).
    """
    servers = Servers.of(n, epsilon, gamma, beta, d)
    logs = _log_factor(servers, delta, _risk_power(beta, alpha))
    return _cap_at_one(servers.radius() ** _risk_power(beta, alpha) * logs)


def equal_sources_rate(
    *,
    epsilon_0: float,
    epsilon: float,
    alpha: float = 1.0,
    delta: Delta = None,
    **sizes: Unpack[Sizes],
) -> float:
    """Return the rate of theorem 3.1: one target, m equal sources.

    It is (5) in closed form, up to a constant. Infinite budgets are allowed.
    """
    servers = _pool_sources(epsilon_0, epsilon, sizes)
    power = _risk_power(servers.beta, alpha)
    return _cap_at_one(
        _inverse_radius(servers) ** -power * _log_factor(servers, delta, power)
    )


def equal_servers_rate(
    *,
    epsilon: float,
    alpha: float = 1.0,
    delta: Delta = None,
    **sizes: Unpack[Sizes],
) -> float:
    """Return rate (3), which is (4): one epsilon for all servers."""
    power = _risk_power(sizes["beta"], alpha)
    plain = float(np.exp(phases.log_risk(epsilon, alpha=alpha, **sizes)))
    return _cap_at_one(
        plain * _log_factor(_pool_sources(epsilon, epsilon, sizes), delta, power)
    )


def no_privacy_rate(
    n: ArrayLike, gamma: ArrayLike, beta: float, d: int, *, alpha: float = 1.0
) -> float:
    """Return the rate of remark 3.3 for servers of sizes n, the target first.

    Remark 3.2's is that of two servers, n0 and m n: without privacy it does not matter
    how the records of equal sources are spread.
    """
    servers = Servers.of(n, np.inf, gamma, beta, d)
    target_power = 2 * servers.beta + servers.d
    total = np.sum(servers.n ** (target_power / servers.power))
    return _cap_at_one(float(total) ** (-_risk_power(beta, alpha) / target_power))


def adaptive_rate(
    n: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    beta: float,
    d: int,
    *,
    delta: ArrayLike,
    alpha: float = 1.0,
) -> float:
    """Return the rate of theorem 5.3, which is 5.1's for equal gamma."""
    servers = Servers.of(n, epsilon, gamma, beta, d)
    cost = adaptation_cost(n, epsilon, gamma, beta, d, delta=delta, alpha=alpha)
    return _cap_at_one(servers.radius() ** _risk_power(beta, alpha) * cost)


def adaptive_equal_sources_rate(
    *,
    epsilon_0: float,
    epsilon: float,
    delta: ArrayLike,
    alpha: float = 1.0,
    **sizes: Unpack[Sizes],
) -> float:
    """Return the rate of corollary 5.2: 3.1 times the adaptation cost."""
    servers = _pool_sources(epsilon_0, epsilon, sizes)
    power = _risk_power(servers.beta, alpha)
    return _cap_at_one(
        _inverse_radius(servers) ** -power * _adaptation_factor(servers, delta, power)
    )


def adaptation_cost(
    n: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    beta: float,
    d: int,
    *,
    delta: ArrayLike,
    alpha: float = 1.0,
) -> float:
    """Return the factor that not knowing beta and gamma costs (theorem 5.3).

    (log(n* H) log(2 H / delta_min))^(beta (1 + alpha) / (2 beta gamma_min + d)), or
    H^(2 beta (1 + alpha) / d) where that is more: H bandwidths share the budget. The
    exponent of theorem 5.1, printed with gamma + 1, is taken to have the least of
    gamma and 1 as well.
    """
    servers = Servers.of(n, epsilon, gamma, beta, d)
    return _adaptation_factor(servers, delta, _risk_power(beta, alpha))


def _adaptation_factor(servers: Servers, delta: ArrayLike, power: float) -> float:
    """Return the adaptation cost of checked servers."""
    total_size = effective_size(servers.n, servers.epsilon)
    count = len(bandwidth_grid(servers.n, servers.epsilon, servers.d))
    delta_min = validate.fraction(
        delta=least_delta(np.asarray(delta, dtype=np.float64))
    )
    logs = max(0.0, math.log(total_size * count))
    logs *= math.log(2 * count / delta_min)
    grown = logs ** (power / float(servers.power.min()))
    return float(max(grown, count ** (2 * power / servers.d)))


def _log_factor(servers: Servers, delta: Delta, power: float) -> float:
    """Return the factor L_N: log(1/delta_min)^(power / (2 beta gamma_min + d))."""
    level_value = target_level(servers.epsilon, delta, servers.n.size)
    if delta is None or level_value == 1.0:
        return 1.0
    return float((level_value - math.log(2)) ** (power / servers.power.min()))


def _pool_sources(epsilon_0: float, epsilon: float, sizes: Sizes) -> Servers:
    """Return the target, and all its equal sources as one server.

    m servers of n records and epsilon are one of m n and epsilon / sqrt(m).
    """
    m = validate.at_least(0, m=sizes["m"])
    pooled = slice(0, 2 if m else 1)
    return Servers.of(
        [sizes["n0"], max(m, 1) * sizes["n"]][pooled],
        [epsilon_0, epsilon / max(m, 1) ** 0.5][pooled],
        [1.0, sizes["gamma"]][pooled],
        sizes["beta"],
        sizes["d"],
    )


def _inverse_radius(servers: Servers) -> float:
    """Return the sum in theorem 3.1: 1/r of each side alone."""
    return float(np.exp(-servers.alone(0.0)).sum())


def _cap_at_one(rate: float) -> float:
    """Return a rate of excess risk, at most 1."""
    return min(1.0, float(rate))


def _risk_power(beta: float, alpha: float) -> float:
    """Return the exponent beta (1 + alpha); a wrong alpha is a UserError."""
    if not 0 <= alpha < math.inf:
        raise UserError(f"alpha is {alpha!r}; a margin's exponent is at least 0.")
    return check_smoothness(beta) * (1 + alpha)


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
