"""Is it worth asking this hospital? What each source adds to a target, by r of (11)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from curvote import validate
from curvote.errors import UserError
from curvote.transfer.servers import Servers, level

# r falls by so much: about as much as (1 - share)^-(2 beta + d) times as many records.
NOTICED = 0.01


@dataclass(frozen=True)
class Server:
    """Who might send: public size n, epsilon (infinity: public), gamma, delta.

    ``delta`` defaults to n^-2. UserError for n below 2 and whatever is not above 0.
    """

    name: str
    n: int
    epsilon: float
    gamma: float = 1.0
    delta: float | None = None

    def __post_init__(self) -> None:
        validate.at_least(2, n=self.n)
        validate.positive(gamma=self.gamma)
        if not self.epsilon > 0:
            raise UserError(f"epsilon is {self.epsilon}; it must be above 0.")
        if self.delta is not None:
            validate.fraction(delta=self.delta)

    @property
    def spent(self) -> float:
        """The delta of its release."""
        return self.n**-2.0 if self.delta is None else self.delta


@dataclass(frozen=True)
class Gain:
    """What the target has with some sources: r, and what that is worth.

    ``risk`` is the rate of excess risk, relative to the target's alone; ``records`` how
    many records of its own, at its own epsilon, would give the same r.
    """

    r: float
    risk: float
    records: float


@dataclass(frozen=True)
class Offer:
    """One source: the gain at its epsilon and as a public server, and where it begins.

    ``least_epsilon`` is the least at which it lowers r by ``NOTICED``; None where it
    does not even as a public server.
    """

    server: Server
    gain: Gain
    if_public: Gain
    least_epsilon: float | None

    @property
    def noticed(self) -> bool:
        """Whether the source adds something noticeable at its own epsilon."""
        return self.least_epsilon is not None and (
            self.server.epsilon >= self.least_epsilon
        )


@dataclass(frozen=True)
class Advice:
    """A target alone, with each source added, and with all of them."""

    target: Server
    beta: float
    d: int
    alpha: float
    alone: Gain
    offers: tuple[Offer, ...]
    together: Gain

    def document(self) -> dict[str, Any]:
        """Return everything as plain JSON values; a public epsilon is null."""
        return {
            "target": _plain(self.target),
            "beta": self.beta,
            "features": self.d,
            "alpha": self.alpha,
            "noticed": NOTICED,
            "alone": asdict(self.alone),
            "sources": [
                _plain(offer.server)
                | asdict(offer.gain)
                | {
                    "if_public": asdict(offer.if_public),
                    "least_epsilon": offer.least_epsilon,
                    "noticed": offer.noticed,
                }
                for offer in self.offers
            ],
            "together": asdict(self.together),
        }


def advise(
    servers: Sequence[Server], d: int, beta: float = 1.0, alpha: float = 1.0
) -> Advice:
    """Return what each source adds to the first of the servers, the target.

    r solves (11); its right-hand side has the least delta of all servers, with or
    without a source, so that a larger source does not cost by its smaller delta.
    ``d`` features, smoothness ``beta`` in (0, 1], margin ``alpha``. UserError for
    fewer than two servers, or a name that stands twice.
    """
    target, *sources = _checked(servers)
    setting = _Setting(target, [*servers], d, beta, alpha)
    return Advice(
        target,
        beta,
        d,
        alpha,
        alone=setting.gain(),
        offers=tuple(setting.offer(source) for source in sources),
        together=setting.gain(*sources),
    )


def _checked(servers: Sequence[Server]) -> Sequence[Server]:
    names = [server.name for server in servers]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UserError(f"server {twice[0]} stands {names.count(twice[0])} times.")
    if len(servers) < 2:
        raise UserError("name the target and at least one source.")
    return servers


class _Setting:
    """A target, and the equation's right-hand side for all that may be asked."""

    def __init__(
        self, target: Server, servers: list[Server], d: int, beta: float, alpha: float
    ) -> None:
        budgets = [server.epsilon for server in servers]
        deltas = [server.spent for server in servers]
        self.target, self.d, self.beta = target, d, beta
        self.level = level(budgets, deltas, len(servers))
        self.power = beta * (1 + alpha)
        self.alone = self._servers().radius(self.level)

    def _servers(self, *sources: Server) -> Servers:
        every = (self.target, *sources)
        return Servers.of(
            [one.n for one in every],
            [one.epsilon for one in every],
            [one.gamma for one in every],
            self.beta,
            self.d,
        )

    def gain(self, *sources: Server) -> Gain:
        """Return r with these sources."""
        r = self._servers(*sources).radius(self.level)
        return Gain(r, float((r / self.alone) ** self.power), self._records(r))

    def offer(self, source: Server) -> Offer:
        """Return what one source adds."""
        public = Server(source.name, source.n, math.inf, source.gamma, source.delta)
        return Offer(source, self.gain(source), self.gain(public), self._least(source))

    def _records(self, r: float) -> float:
        """Return n_0 at which the target's own term in (11) is all of it."""
        own = 2 * self.beta + self.d
        free = self.level * r**-own
        private = math.sqrt(self.level * r ** -(own + self.d)) / self.target.epsilon
        return float(max(free, private))

    def _least(self, source: Server) -> float | None:
        """Return the epsilon at which the source's own term fills what is missing."""
        log_r = math.log((1 - NOTICED) * self.alone)
        both = self._servers(source)
        own = both.log_precision(log_r)[0] + both.power[0] * log_r
        missing = math.log(self.level - float(np.exp(own))) - both.power[1] * log_r
        if missing > math.log(source.n):
            return None
        return float(math.exp((missing - self.d * log_r) / 2) / source.n)


def _plain(server: Server) -> dict[str, Any]:
    public = math.isinf(server.epsilon)
    return {
        "name": server.name,
        "n": server.n,
        "epsilon": None if public else server.epsilon,
        "gamma": server.gamma,
        "delta": None if public else server.spent,
    }
