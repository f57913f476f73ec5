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
from curvote.transfer.bandwidths import bandwidths, effective
from curvote.transfer.phases import Sizes
from curvote.transfer.servers import Servers, least, level, smoothness

Delta = ArrayLike | None


def risk(r: float, beta: float, alpha: float = 1.0) -> float:
    """Return (6), the rate of excess risk at radius r: r^(beta (1 + alpha))."""
    return _capped(validate.positive(r=r) ** _power(beta, alpha))


def minimax(
    n: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    beta: float,
    d: int,
    *,
    delta: Delta = None,
    alpha: float = 1.0,
) -> float:
    """Return theorem 3.4's rate, of the target alone remark 3.1's.

    Arguments as in `rates.radius`. Without delta it is theorem 4.3's lower rate,
    r^(beta (1 + alpha)) with r of (5); with it theorem 4.2's upper rate, larger by a
    power of log(1/delta_min).
    """
    servers = Servers.of(n, epsilon, gamma, beta, d)
    logs = _logarithms(servers, delta, _power(beta, alpha))
    return _capped(servers.radius() ** _power(beta, alpha) * logs)


def equal_sources(
    *,
    epsilon_0: float,
    epsilon: float,
    alpha: float = 1.0,
    delta: Delta = None,
    **sizes: Unpack[Sizes],
) -> float:
    """Return theorem 3.1's rate: one target, m equal sources (m = 0: remark 3.1).

    It is (5) in closed form, up to a constant. Infinite budgets are allowed.
    """
    servers = _equal(epsilon_0, epsilon, sizes)
    power = _power(servers.beta, alpha)
    return _capped(_summed(servers) ** -power * _logarithms(servers, delta, power))


def equal_servers(
    *,
    epsilon: float,
    alpha: float = 1.0,
    delta: Delta = None,
    **sizes: Unpack[Sizes],
) -> float:
    """Return (3), which is (4): one epsilon for all, the better of two worse rates."""
    power = _power(sizes["beta"], alpha)
    plain = float(np.exp(phases.log_risk(epsilon, alpha=alpha, **sizes)))
    return _capped(plain * _logarithms(_equal(epsilon, epsilon, sizes), delta, power))


def no_privacy(
    n: ArrayLike, gamma: ArrayLike, beta: float, d: int, *, alpha: float = 1.0
) -> float:
    """Return remark 3.3's rate for servers of sizes n, the target first.

    Remark 3.2's is that of two servers, n0 and m n: without privacy it does not matter
    how the records of equal sources are spread.
    """
    servers = Servers.of(n, np.inf, gamma, beta, d)
    own = 2 * servers.beta + servers.d
    total = np.sum(servers.n ** (own / servers.power))
    return _capped(float(total) ** (-_power(beta, alpha) / own))


def adaptive(
    n: ArrayLike,
    epsilon: ArrayLike,
    gamma: ArrayLike,
    beta: float,
    d: int,
    *,
    delta: ArrayLike,
    alpha: float = 1.0,
) -> float:
    """Return theorem 5.3's rate, which is 5.1's where all gamma are equal."""
    servers = Servers.of(n, epsilon, gamma, beta, d)
    cost = adaptation_cost(n, epsilon, gamma, beta, d, delta=delta, alpha=alpha)
    return _capped(servers.radius() ** _power(beta, alpha) * cost)


def adaptive_equal_sources(
    *,
    epsilon_0: float,
    epsilon: float,
    delta: ArrayLike,
    alpha: float = 1.0,
    **sizes: Unpack[Sizes],
) -> float:
    """Return corollary 5.2's rate: that of theorem 3.1 times the cost of adaptation."""
    servers = _equal(epsilon_0, epsilon, sizes)
    power = _power(servers.beta, alpha)
    return _capped(_summed(servers) ** -power * _adaptation(servers, delta, power))


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
    """Return by what factor not knowing beta and gamma raises the rate (theorem 5.3).

    (log(n* H) log(2 H / delta_min))^(beta (1 + alpha) / (2 beta gamma_min + d)), or
    H^(2 beta (1 + alpha) / d) where that is more: H bandwidths share the budget. The
    exponent of theorem 5.1, printed with gamma + 1, is taken to have the least of
    gamma and 1 as well.
    """
    servers = Servers.of(n, epsilon, gamma, beta, d)
    return _adaptation(servers, delta, _power(beta, alpha))


def _adaptation(servers: Servers, delta: ArrayLike, power: float) -> float:
    together = effective(servers.n, servers.epsilon)
    count = len(bandwidths(servers.n, servers.epsilon, servers.d))
    delta_min = validate.fraction(delta=least(np.asarray(delta, dtype=np.float64)))
    logs = max(0.0, math.log(together * count))
    logs *= math.log(2 * count / delta_min)
    grown = logs ** (power / float(servers.power.min()))
    return float(max(grown, count ** (2 * power / servers.d)))


def _logarithms(servers: Servers, delta: Delta, power: float) -> float:
    """Return L_N at its order: log(1/delta_min)^(power / (2 beta gamma_min + d))."""
    found = level(servers.epsilon, delta, servers.n.size)
    if delta is None or found == 1.0:
        return 1.0
    return float((found - math.log(2)) ** (power / servers.power.min()))


def _equal(epsilon_0: float, epsilon: float, sizes: Sizes) -> Servers:
    """Return the target and all its sources as one server, to which (5) is the same.

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


def _summed(servers: Servers) -> float:
    """Return the sum in theorem 3.1: 1/r of each side alone."""
    return float(np.exp(-servers.alone(0.0)).sum())


def _capped(rate: float) -> float:
    """Return a rate of excess risk, which is a probability."""
    return min(1.0, float(rate))


def _power(beta: float, alpha: float) -> float:
    if not 0 <= alpha < math.inf:
        raise UserError(f"alpha is {alpha!r}; a margin's exponent is at least 0.")
    return smoothness(beta) * (1 + alpha)
