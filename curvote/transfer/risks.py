"""Rates of excess risk (DTK, theorems 3.1 to 5.3), up to constants and at most 1.

``alpha`` >= 0 is the margin's exponent (definition 2.5). Given ``delta`` a rate has its
logarithms at the largest order that the theorem allows; without it none.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from curvote import validate
from curvote.errors import UserError
from curvote.transfer import phases
from curvote.transfer.bandwidths import bandwidth_grid, effective_size
from curvote.transfer.phases import Sizes
from curvote.transfer.servers import (
    Servers,
    check_smoothness,
    least_delta,
    target_level,
)

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
